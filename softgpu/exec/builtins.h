// The functions that compilers' code calls and no module defines: ptx::Builtin.
//
// Arguments and results lie in the caller's local memory, where the plan of the call says. Each
// function does its work for the running lanes, one after another; false after a fault. Thread
// safety: a warp's own thread.
#pragma once

#include "softgpu/exec/code.h"

namespace softgpu::exec {

bool CallBuiltin(const Inst* ip, Warp* w, const CallPlan& plan);

// Argument `k` of a lane; 0 where the call has none.
uint64_t Argument(const Warp* w, uint32_t lane, const CallPlan& plan, size_t k);
void SetResult(Warp* w, uint32_t lane, const CallPlan& plan, uint64_t value);

bool CallPrintf(const Inst* ip, Warp* w, const CallPlan& plan);
bool CallAssert(const Inst* ip, Warp* w, const CallPlan& plan);
bool CallSetCondition(const Inst* ip, Warp* w, const CallPlan& plan);

// builtin_memory.cc
bool CallMalloc(const Inst* ip, Warp* w, const CallPlan& plan);
bool CallFree(const Inst* ip, Warp* w, const CallPlan& plan);
bool CallMemcpy(const Inst* ip, Warp* w, const CallPlan& plan);
bool CallMemset(const Inst* ip, Warp* w, const CallPlan& plan);

}  // namespace softgpu::exec
