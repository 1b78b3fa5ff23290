// Memory as lanes see it: every state space, bounds and alignment, one lane at a time. The fast
// paths of simd/memory.cc come here when anything is unusual. Thread safety: a warp's own thread.
#pragma once

#include "softgpu/exec/warp.h"

namespace softgpu::exec {

// Finishes the load or store `ip` for the lanes in `lanes` and returns the next instruction, or
// null after a fault. MemoryShape in Inst::aux tells sizes and space.
const Inst* AccessSlowly(const Inst* ip, Warp* w, uint32_t lanes);

// Where `address` of `space` (a ptx::Space) lies for `lane`, or null after recording a fault.
std::byte* Resolve(Warp* w, const Inst* ip, uint32_t lane, uint64_t address, uint32_t bytes,
                   uint8_t space, bool is_store);

}  // namespace softgpu::exec
