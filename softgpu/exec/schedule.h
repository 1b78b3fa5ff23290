// Which lanes of a warp run next. Lanes that diverge become groups; the deepest call and then the
// lowest program counter runs first, so groups meet again at reconvergence points (Join) and at
// warp barriers. Thread safety: a warp's own thread.
#pragma once

#include "softgpu/exec/block.h"
#include "softgpu/exec/warp.h"

namespace softgpu::exec {

// Sets the running lanes aside at `pc`.
void Park(Warp* w, const Inst* pc, Wait wait = Wait::kReady);
void ParkLanes(Warp* w, uint32_t mask, const Inst* pc);
// Takes up the best group that can run; null with Warp::stop set when none can.
const Inst* Next(Warp* w);
// As Next, but the group that waited longest: fairness after a group used up its fuel.
const Inst* NextInTurn(Warp* w);
// The running lanes go on at `pc` unless another group should go first.
const Inst* Continue(Warp* w, const Inst* pc);
// The running lanes go round a loop that only waits, and some left it this time: the next round is
// worth trying. `branch` closes the loop.
void NoteRound(const Inst* branch, Warp* w);
// A round of such a loop was in vain: the running lanes try again at `pc` when the warp's other
// lanes can't go on, or have got somewhere. The warp makes way for others where all of its lanes
// wait.
const Inst* WaitForOthers(Warp* w, const Inst* pc);
// Whether the running lanes must wait here for others in `sync_mask` (shfl.sync and its kin). When
// true,
// `*next` is what to run instead.
bool MustWait(const Inst* ip, Warp* w, uint32_t sync_mask, const Inst** next);
// Lanes of the running group end.
const Inst* ExitLanes(Warp* w);

// barrier.cc: marks lanes as arrived and releases everyone when all have come.
void Arrive(Warp* w, uint32_t barrier, uint32_t expected);
// After lanes have exited: barriers that waited for them only.
void CheckBarriers(Block* block);
// After lanes have come to it.
void CheckBarrier(Block* block, uint32_t number);

// call.cc
void LeaveFrame(Warp* w, Frame* frame, uint32_t lanes);

}  // namespace softgpu::exec
