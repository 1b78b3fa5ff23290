#include "softgpu/exec/handlers.h"
#include "softgpu/exec/schedule.h"

namespace softgpu::exec {
namespace {

uint32_t First(const Warp* w, uint32_t offset) {
  return reinterpret_cast<const uint32_t*>(w->regs + offset)[__builtin_ctz(w->mask)];
}

// Puts the running lanes to sleep at `pc` until the barrier of `ip` opens.
const Inst* WaitAtBarrier(const Inst* ip, Warp* w, const Inst* pc, uint32_t barriers = kBarriers) {
  const uint32_t number = First(w, ip->a);
  const uint32_t expected = First(w, ip->b);
  if (number >= barriers) {
    return RaiseFault(ip, w, -1, CUDA_ERROR_ILLEGAL_INSTRUCTION, "barrier number out of range");
  }
  Arrive(w, number, expected);
  Park(w, pc, Wait::kBarrier);
  w->parked[w->parked_count - 1].barrier = static_cast<uint8_t>(number);
  CheckBarrier(w->block, number);
  return Next(w);
}

}  // namespace

const Inst* BarSync(const Inst* ip, Warp* w) {
  if (w->in_step && w->mask == w->live && w->parked_count == 0 && First(w, ip->b) == 0 &&
      First(w, ip->a) < kBarriers) {
    w->pc = ip;
    return kAtBarrier;
  }
  return WaitAtBarrier(ip, w, ip + 1);
}

const Inst* ClusterWait(const Inst* ip, Warp* w) {
  return WaitAtBarrier(ip, w, ip + 1, kClusterBarrier + 1);
}

const Inst* BarArrive(const Inst* ip, Warp* w) {
  const uint32_t number = First(w, ip->a);
  if (number >= kBarriers) {
    return RaiseFault(ip, w, -1, CUDA_ERROR_ILLEGAL_INSTRUCTION, "barrier number out of range");
  }
  Arrive(w, number, First(w, ip->b));
  CheckBarrier(w->block, number);
  return ip + 1;
}

const Inst* BarRed(const Inst* ip, Warp* w) {
  const uint32_t number = First(w, ip->a);
  if (number < kBarriers) {
    Barrier& barrier = w->block->barriers[number];
    uint32_t p = *reinterpret_cast<const uint32_t*>(w->regs + ip->c);
    if (ip->imm != 0) p = ~p;
    barrier.ones += __builtin_popcount(p & w->mask);
    barrier.voters += __builtin_popcount(w->mask);
  }
  return WaitAtBarrier(ip, w, ip + 1);
}

const Inst* BarRedResult(const Inst* ip, Warp* w) {
  const Barrier& barrier = w->block->barriers[First(w, ip->a) % kBarriers];
  const ptx::Combine combine = static_cast<ptx::Combine>(ip->imm);
  if (combine == ptx::Combine::kPopc) {
    uint32_t* d = reinterpret_cast<uint32_t*>(w->regs + ip->d);
    for (uint32_t m = w->mask; m != 0; m &= m - 1) d[__builtin_ctz(m)] = barrier.ones_before;
    return ip + 1;
  }
  const bool holds = combine == ptx::Combine::kAnd ? barrier.ones_before == barrier.voters_before
                                                   : barrier.ones_before != 0;
  uint32_t& d = *reinterpret_cast<uint32_t*>(w->regs + ip->d);
  d = (d & ~w->mask) | (holds ? w->mask : 0);
  return ip + 1;
}

}  // namespace softgpu::exec
