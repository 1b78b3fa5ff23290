// bar.sync, bar.arrive, bar.red: per barrier, which lanes of each warp have come.
#include "softgpu/exec/check.h"
#include "softgpu/exec/schedule.h"

namespace softgpu::exec {
namespace {

bool Complete(const Block& block, const Barrier& barrier) {
  if (barrier.expected == 0) {
    for (uint32_t i = block.warp_count; i-- > 0;) {
      if ((block.warps[i].live & ~barrier.arrived[i]) != 0) return false;
    }
    return true;
  }
  // Threads are counted by whole warps once all living lanes of one have come.
  uint32_t threads = 0;
  for (uint32_t i = 0; i < block.warp_count; ++i) {
    if (barrier.arrived[i] == 0) continue;
    const bool whole = (block.warps[i].live & ~barrier.arrived[i]) == 0;
    threads += whole ? kLanes : __builtin_popcount(barrier.arrived[i]);
  }
  return threads >= barrier.expected;
}

void Release(Block* block, uint32_t number) {
  Barrier& barrier = block->barriers[number];
  barrier.ones_before = barrier.ones;
  barrier.voters_before = barrier.voters;
  barrier.ones = barrier.voters = 0;
  block->barriers_in_use &= ~(1u << number);
  for (uint32_t i = 0; i < block->warp_count; ++i) {
    barrier.arrived[i] = 0;
    Warp& warp = block->warps[i];
    for (uint32_t g = 0; g < warp.parked_count; ++g) {
      Group& group = warp.parked[g];
      if (group.wait != Wait::kBarrier || group.barrier != number) continue;
      group.wait = Wait::kReady;
      if (block->shadow != nullptr) block->shadow->Leave(i, number);
    }
  }
  if (block->shadow != nullptr) block->shadow->Opened(number);
}

}  // namespace

void Arrive(Warp* w, uint32_t number, uint32_t expected) {
  Barrier& barrier = w->block->barriers[number];
  w->block->barriers_in_use |= 1u << number;
  barrier.expected = (expected + kLanes - 1) / kLanes * kLanes;
  barrier.arrived[w->index] |= w->mask;
  if (w->block->shadow != nullptr) w->block->shadow->Arrive(w->index, number);
}

void CheckBarrier(Block* block, uint32_t number) {
  const bool in_use = (block->barriers_in_use >> number & 1) != 0;
  if (in_use && Complete(*block, block->barriers[number])) Release(block, number);
}

void CheckBarriers(Block* block) {
  for (uint32_t left = block->barriers_in_use; left != 0; left &= left - 1)
    CheckBarrier(block, static_cast<uint32_t>(__builtin_ctz(left)));
}

}  // namespace softgpu::exec
