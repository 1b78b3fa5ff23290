// How a block's warps take turns: in step from barrier to barrier while they stay together, else
// each as far as it comes.
#include <sched.h>
#include <xmmintrin.h>

#include <algorithm>
#include <utility>

#include "softgpu/exec/fault.h"
#include "softgpu/exec/handlers.h"
#include "softgpu/exec/schedule.h"

namespace softgpu::exec {
namespace {

constexpr uint32_t kRoundsBetweenLooks = 256;  // at Launch::cancel and the watchdog

// Rounds in vain before a block's thread makes pauses, and before it gives its processor up.
constexpr uint32_t kRoundsAtOnce = 2, kRoundsWithPauses = 32, kPausesMax = 64;

bool Yielded(const Warp& w) { return w.stop == Stop::kYield || w.stop == Stop::kInVain; }

bool CanRun(const Warp& w) {
  if (w.mask != 0) return true;
  for (uint32_t g = 0; g < w.parked_count; ++g) {
    if (w.parked[g].wait != Wait::kBarrier) return true;
  }
  return false;
}

// Runs a warp until it stops. Nothing with a destructor may live here: a page fault jumps out.
void RunWarp(Warp* w, bool in_turn) {
  w->fuel = kFuel;
  w->turn.fair = in_turn && w->parked_count > 1;
  w->turn.in_vain = true;
  const Inst* ip = in_turn ? NextInTurn(w) : Next(w);
  while (ip != nullptr) ip = ip->run(ip, w);
}

// Puts the warps from `first` to sleep at `at`, ready to run.
void ParkAll(Block* block, uint32_t first, const Inst* at) {
  for (uint32_t i = first; i < block->warp_count; ++i) {
    if (block->warps[i].live != 0) Park(&block->warps[i], at);
  }
}

// Lets a warp wait at a barrier that it has come to in step with others.
void WaitAt(const Inst* barrier, Warp* w) {
  const Inst* next = BarSync(barrier, w);
  if (next != nullptr) Park(w, next);
}

bool ReportDeadlock(Block* block) {
  for (uint32_t i = 0; i < block->warp_count; ++i) {
    Warp& w = block->warps[i];
    if (w.live == 0) continue;
    const Inst* pc = w.parked_count > 0 ? w.parked[0].pc : nullptr;
    w.mask = w.parked_count > 0 ? w.parked[0].mask : w.live;
    RaiseFault(pc == nullptr ? nullptr : pc - 1, &w, -1, CUDA_ERROR_LAUNCH_FAILED,
               "every thread left waits at a barrier that some thread will never reach");
    return true;
  }
  return false;
}

void ReportOverdue(Warp* w) {
  w->mask = w->parked[w->parked_count - 1].mask;
  RaiseFault(w->parked[w->parked_count - 1].pc, w, -1, CUDA_ERROR_LAUNCH_TIMEOUT,
             "the grid ran longer than the watchdog's " +
                 std::to_string(w->block->state->launch->watchdog_ms) + " ms");
}

// All warps that live have all their lanes at one place: takes them up and says where. Else null.
const Inst* TakeUpTogether(Block* block) {
  if (const Inst* begins = std::exchange(block->begins, nullptr)) {
    if (block->shadow == nullptr) return begins;
    ParkAll(block, 0, begins);
  }
  if (block->shadow != nullptr || block->barriers_in_use != 0) return nullptr;
  const Inst* place = nullptr;
  for (uint32_t i = 0; i < block->warp_count; ++i) {
    const Warp& w = block->warps[i];
    if (w.live == 0) continue;
    const Group& group = w.parked[0];
    if (w.parked_count != 1 || group.wait != Wait::kReady || group.mask != w.live) return nullptr;
    if (place != nullptr && group.pc != place) return nullptr;
    place = group.pc;
  }
  for (uint32_t i = 0; place != nullptr && i < block->warp_count; ++i) {
    if (block->warps[i].live != 0) Next(&block->warps[i]);
  }
  return place;
}

// Each warp goes on by itself: the first `arrived` wait at their barriers, those from `to_run` are
// still at `at`.
void Disperse(Block* block, uint32_t arrived, uint32_t to_run, const Inst* at) {
  for (uint32_t i = 0; i < block->warp_count; ++i) block->warps[i].in_step = false;
  for (uint32_t i = 0; i < arrived; ++i) {
    if (block->warps[i].live != 0) WaitAt(block->warps[i].pc, &block->warps[i]);
  }
  ParkAll(block, to_run, at);
}

// Whether the watchdog or the driver ends the block, which is at `at`.
bool MustEnd(Block* block, const Inst* at) {
  if (block->state->Stopping()) return true;
  if (!block->state->Overdue()) return false;
  ParkAll(block, 0, at);
  uint32_t alive = 0;
  while (block->warps[alive].live == 0) ++alive;
  ReportOverdue(&block->warps[alive]);
  return true;
}

// Begins with the warp of the trap at `at`. Compiled code runs it and those after it as far as they
// finish, and the trap has the last one then. Returns where that one goes on.
const Inst* RunOn(Block* block, const Inst* at, FaultTrap* trap) {
  const FunctionCode& code = *trap->warp->frame->code;
  if (code.compiled == nullptr) return at;
  const CompiledFunction& compiled = *code.compiled;
  const Inst* const begin = code.code.data();
  const size_t pc = static_cast<size_t>(at - begin);
  const Inst* const next = compiled.run(begin, trap->warp, pc, compiled.handlers.data(),
                                        &trap->warp, block->warps + block->warp_count);
  if (next != reinterpret_cast<const Inst*>(CompiledFunction::kRefused)) return next;
  trap->warp->access_form = 0;
  return compiled.handlers[pc](at, trap->warp);
}

// Runs all warps from `at` to the next barrier, all of them from there to the next, and so on: most
// blocks run like this from their beginning to their end, and nobody need be put to sleep and
// woken. kYield: some warp went a way of its own, and all are as RunWarps() wants them.
Progress RunInStep(Block* block, const Inst* at, FaultTrap* trap) {
  const uint32_t count = block->warp_count;
  for (uint32_t round = 1;; ++round) {
    for (uint32_t i = 0; i < count; ++i) {
      block->warps[i].fuel = kFuel;
      block->warps[i].stop = Stop::kBlocked;
      block->warps[i].in_step = true;
    }
    for (uint32_t i = 0; i < count; ++i) {
      if (block->warps[i].live == 0) continue;
      trap->warp = &block->warps[i];
      const Inst* ip = RunOn(block, at, trap);
      Warp* w = trap->warp;
      i = w->index;
      if (ip != nullptr && ip != kAtBarrier) block->intact = false;
      while (ip != nullptr && ip != kAtBarrier) ip = ip->run(ip, w);
      if (w->stop == Stop::kFault) return Progress::kFault;
      if (w->live == 0 || ip == kAtBarrier) continue;
      Disperse(block, i, i + 1, at);
      return Progress::kYield;
    }
    const Inst* place = nullptr;
    bool together = block->barriers_in_use == 0;
    for (uint32_t i = 0; i < count; ++i) {
      const Warp& w = block->warps[i];
      if (w.live == 0) continue;
      if (place == nullptr) place = w.pc;
      together = together && w.pc == place;
    }
    if (place == nullptr) return Progress::kDone;
    if (!together) {
      Disperse(block, count, count, at);
      return Progress::kYield;
    }
    at = place + 1;
    if (round % kRoundsBetweenLooks == 0 && MustEnd(block, at)) return Progress::kFault;
  }
}

// One turn for every warp that can run.
Progress RunWarps(Block* block, FaultTrap* trap) {
  for (;;) {
    if (const Inst* at = TakeUpTogether(block)) {
      const Progress progress = RunInStep(block, at, trap);
      if (progress != Progress::kYield) return progress;
    }
    block->intact = false;
    bool alive = false, ran = false, yielded = false, in_vain = true;
    for (uint32_t i = 0; i < block->warp_count; ++i) {
      Warp* w = &block->warps[i];
      if (w->live == 0) continue;
      if (!CanRun(*w)) {
        alive = true;
        continue;
      }
      ran = true;
      trap->warp = w;
      RunWarp(w, Yielded(*w));
      alive = alive || w->live != 0;
      if (w->stop == Stop::kFault) return Progress::kFault;
      in_vain = in_vain && w->stop == Stop::kInVain;
      if (Yielded(*w)) {
        yielded = true;
        if (block->state->Stopping()) return Progress::kFault;
        if (block->state->Overdue()) {
          ReportOverdue(w);
          return Progress::kFault;
        }
      }
    }
    if (!alive) return Progress::kDone;
    if (!ran) {
      ReportDeadlock(block);
      return Progress::kFault;
    }
    if (!yielded) continue;
    block->rounds_in_vain = in_vain ? block->rounds_in_vain + 1 : 0;
    return Progress::kYield;
  }
}

// Every warp of the block waits for blocks on other threads. Each look takes a cache line away from
// a block that is about to write it.
void LetOthersRun(const Block& block) {
  if (block.rounds_in_vain <= kRoundsAtOnce) return;
  if (block.rounds_in_vain > kRoundsWithPauses) {
    sched_yield();
    return;
  }
  const uint32_t pauses = 1u << std::min(block.rounds_in_vain - kRoundsAtOnce, 31u);
  for (uint32_t n = std::min(pauses, kPausesMax); n != 0; --n) _mm_pause();
}

// After a page fault in a loop that compiled code ran lane by lane, which says neither which lane
// nor which instruction: runs the loop in step from its beginning, to fault there.
void FindAgain(Warp* w) {
  w->lockstep = false;
  if (w->again == nullptr) return;
  const Inst* ip = std::exchange(w->again, nullptr);
  w->lockstep = true;
  while (ip != nullptr && ip != kAtBarrier) ip = ip->run(ip, w);
}

// Does `work`, which runs warps of the trap that it is given: page faults end it, and the host's
// rounding and flushing don't leak into kernels, nor theirs out. Nothing with a destructor may live
// in `work`.
template <class Work>
Progress Trapped(const Work& work) {
  FaultTrap trap;
  const unsigned host_mxcsr = _mm_getcsr();
  _mm_setcsr(0x1f80);
  PushTrap(&trap);
  Progress progress = Progress::kFault;
  if (sigsetjmp(trap.target, kSaveSignalMask) == 0) {
    progress = work(&trap);
  } else {
    _mm_setcsr(0x1f80);
    FindAgain(trap.warp);
    ReportPageFault(trap);
    progress = Progress::kFault;
  }
  PopTrap();
  _mm_setcsr(host_mxcsr);
  return progress;
}

}  // namespace

Progress RunBlock(Block* block) {
  return Trapped([block](FaultTrap* trap) { return RunWarps(block, trap); });
}

bool RunBlocks(LaunchState* state, BlockMemory* memory, uint64_t first, uint64_t last) {
  const auto run = [=](FaultTrap* trap) {
    for (uint64_t index = first; index < last; ++index) {
      Block* const block = memory->Start(index);
      Progress progress = Progress::kYield;
      while (progress == Progress::kYield) {
        if (state->Stopping()) return Progress::kFault;
        LetOthersRun(*block);
        progress = RunWarps(block, trap);
      }
      if (progress == Progress::kFault) return progress;
    }
    return Progress::kDone;
  };
  return Trapped(run) == Progress::kDone;
}

}  // namespace softgpu::exec
