// Branches, guards, ends.
#include <xmmintrin.h>

#include "softgpu/exec/handlers.h"
#include "softgpu/exec/schedule.h"

namespace softgpu::exec {
namespace {

constexpr unsigned kDefaultMxcsr = 0x1f80;  // nearest, no flushing, all exceptions masked

inline uint32_t GuardLanes(const Inst* ip, Warp* w) {
  const uint32_t p = *reinterpret_cast<const uint32_t*>(w->regs + (ip->guard & ~1u));
  return w->mask & ((ip->guard & 1) != 0 ? ~p : p);
}

inline const Inst* Target(const Inst* ip) { return reinterpret_cast<const Inst*>(ip->imm); }

// The running lanes jump back to `target`: where endless loops are noticed.
inline const Inst* Back(Warp* w, const Inst* target) {
  if (__builtin_expect(--w->fuel > 0, 1)) return target;
  Park(w, target);
  w->stop = Stop::kYield;
  return nullptr;
}

}  // namespace

const Inst* Guarded(const Inst* ip, Warp* w) {
  const uint32_t all = w->mask, lanes = GuardLanes(ip, w);
  if (lanes == 0) return ip + 1;
  w->mask = lanes;
  const Inst* next = ip->inner(ip, w);
  w->mask = all;
  return next;
}

const Inst* Rounded(const Inst* ip, Warp* w) {
  _mm_setcsr(ip->aux);
  const Inst* next = ip->inner(ip, w);
  _mm_setcsr(kDefaultMxcsr);
  return next;
}

const Inst* GuardedRounded(const Inst* ip, Warp* w) {
  const uint32_t all = w->mask, lanes = GuardLanes(ip, w);
  if (lanes == 0) return ip + 1;
  w->mask = lanes;
  const Inst* next = Rounded(ip, w);
  w->mask = all;
  return next;
}

const Inst* Branch(const Inst* ip, Warp* w) { return Continue(w, Target(ip)); }

const Inst* BranchBack(const Inst* ip, Warp* w) { return Back(w, Target(ip)); }

const Inst* BranchIf(const Inst* ip, Warp* w) {
  const uint32_t taken = GuardLanes(ip, w);
  if (taken == 0) return ip + 1;
  if (taken == w->mask) return Continue(w, Target(ip));
  ParkLanes(w, taken, Target(ip));
  w->mask &= ~taken;
  return ip + 1;
}

const Inst* BranchIfBack(const Inst* ip, Warp* w) {
  const uint32_t taken = GuardLanes(ip, w);
  if (taken == 0) return ip + 1;
  if (taken != w->mask) {
    ParkLanes(w, w->mask & ~taken, ip + 1);
    w->mask = taken;
  }
  return Back(w, Target(ip));
}

const Inst* BranchWait(const Inst* ip, Warp* w) {
  if (w->turn.spin_at != ip || w->turn.spin_mask != w->mask) {
    NoteRound(ip, w);
    return Back(w, Target(ip));
  }
  return WaitForOthers(w, Target(ip));
}

const Inst* BranchIfWait(const Inst* ip, Warp* w) {
  const uint32_t taken = GuardLanes(ip, w);
  if (taken == 0) return ip + 1;
  if (taken != w->mask) {
    ParkLanes(w, w->mask & ~taken, ip + 1);
    w->mask = taken;
  }
  return BranchWait(ip, w);
}

const Inst* BranchTable(const Inst* ip, Warp* w) {
  const FunctionCode& code = *w->frame->code;
  const std::vector<uint32_t>& table = code.branch_tables[ip->imm];
  const uint32_t* index = reinterpret_cast<const uint32_t*>(w->regs + ip->a);
  const uint32_t all = w->mask;
  for (uint32_t left = all; left != 0;) {
    const uint32_t chosen = index[__builtin_ctz(left)];
    uint32_t lanes = 0;
    for (uint32_t m = left; m != 0; m &= m - 1) {
      if (index[__builtin_ctz(m)] == chosen) lanes |= m & (0 - m);
    }
    if (chosen >= table.size()) {
      return RaiseFault(ip, w, __builtin_ctz(lanes), CUDA_ERROR_ILLEGAL_INSTRUCTION,
                        "brx.idx past the end of its table");
    }
    left &= ~lanes;
    const Inst* target = code.code.data() + table[chosen];
    if (lanes == all) return target <= ip ? Back(w, target) : Continue(w, target);
    ParkLanes(w, lanes, target);
  }
  w->mask = 0;
  // A table that leads backwards is a loop too.
  if (--w->fuel <= 0) {
    w->stop = Stop::kYield;
    return nullptr;
  }
  return Next(w);
}

const Inst* Join(const Inst* ip, Warp* w) {
  if (__builtin_expect(w->parked_count == 0, 1)) return ip + 1;
  const Inst* next = Continue(w, ip);
  return next == ip ? ip + 1 : next;
}

const Inst* Exit(const Inst*, Warp* w) { return ExitLanes(w); }

const Inst* Trap(const Inst* ip, Warp* w) {
  return RaiseFault(ip, w, -1, CUDA_ERROR_LAUNCH_FAILED, "trap instruction");
}

const Inst* Unimplemented(const Inst* ip, Warp* w) {
  return RaiseFault(ip, w, -1, CUDA_ERROR_ILLEGAL_INSTRUCTION, "instruction not implemented");
}

const Inst* MemoryFence(const Inst* ip, Warp*) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return ip + 1;
}

const Inst* Nothing(const Inst* ip, Warp*) { return ip + 1; }

const Inst* Yield(const Inst* ip, Warp* w) {
  Park(w, ip + 1);
  w->stop = Stop::kYield;
  return nullptr;
}

}  // namespace softgpu::exec
