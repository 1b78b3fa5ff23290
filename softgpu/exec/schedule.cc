#include "softgpu/exec/schedule.h"

#include <algorithm>
#include <cassert>

namespace softgpu::exec {
namespace {

constexpr uint32_t kPatienceMax = 64;

bool Before(const Group& a, const Group& b) {
  if (a.frame->depth != b.frame->depth) return a.frame->depth > b.frame->depth;
  return a.pc < b.pc;
}

bool MayRun(const Group& group) {
  return group.wait == Wait::kReady || group.wait == Wait::kOthers;
}

void RemoveGroup(Warp* w, uint32_t index) {
  for (uint32_t i = index; i + 1 < w->parked_count; ++i) w->parked[i] = w->parked[i + 1];
  --w->parked_count;
}

// Takes group `index` and every ready one at the same place.
const Inst* Take(Warp* w, uint32_t index) {
  const Group group = w->parked[index];
  RemoveGroup(w, index);
  w->mask = group.mask;
  w->resumed = group.released;
  for (uint32_t i = 0; i < w->parked_count;) {
    const Group& other = w->parked[i];
    if (MayRun(other) && other.pc == group.pc && other.frame == group.frame) {
      w->mask |= other.mask;
      RemoveGroup(w, i);
    } else {
      ++i;
    }
  }
  w->frame = group.frame;
  w->regs = group.frame->regs;
  return group.pc;
}

uint32_t WaitingAtWarpBarrier(const Warp* w) {
  uint32_t lanes = 0;
  for (uint32_t i = 0; i < w->parked_count; ++i) {
    if (w->parked[i].wait == Wait::kWarpSync) lanes |= w->parked[i].mask;
  }
  return lanes;
}

// Nothing is ready: lets go a group whose partners have all come to a warp barrier, or, since they
// never will, any. False when no group waits at a warp barrier.
bool ReleaseWarpBarrier(Warp* w) {
  const uint32_t waiting = WaitingAtWarpBarrier(w);
  if (waiting == 0) return false;
  uint32_t chosen = kLanes;
  for (uint32_t i = 0; i < w->parked_count; ++i) {
    const Group& group = w->parked[i];
    if (group.wait != Wait::kWarpSync) continue;
    const bool complete = (group.sync_mask & w->live & ~waiting) == 0;
    if (complete || chosen == kLanes) chosen = i;
    if (complete) break;
  }
  const uint32_t together = w->parked[chosen].sync_mask;
  for (uint32_t i = 0; i < w->parked_count; ++i) {
    Group& group = w->parked[i];
    if (group.wait == Wait::kWarpSync && (i == chosen || (group.mask & together) != 0)) {
      group.wait = Wait::kReady;
      group.released = true;
    }
  }
  return true;
}

void Push(Warp* w, uint32_t mask, const Inst* pc) {
  assert(w->parked_count < kLanes);
  Group& group = w->parked[w->parked_count++];
  group = Group{};
  group.mask = mask;
  group.pc = pc;
  group.frame = w->frame;
}

uint32_t Best(const Warp* w) {
  uint32_t best = kLanes;
  for (uint32_t i = 0; i < w->parked_count; ++i) {
    if (w->parked[i].wait != Wait::kReady) continue;
    if (best == kLanes || Before(w->parked[i], w->parked[best])) best = i;
  }
  return best;
}

// Groups in loops that only wait try again. False when there are none.
bool TryAgain(Warp* w) {
  bool any = false;
  for (uint32_t i = 0; i < w->parked_count; ++i) {
    if (w->parked[i].wait != Wait::kOthers) continue;
    w->parked[i].wait = Wait::kReady;
    any = true;
  }
  return any;
}

}  // namespace

void ParkLanes(Warp* w, uint32_t mask, const Inst* pc) {
  // Lanes that leave a loop one after another are one group.
  if (w->parked_count != 0) {
    Group& last = w->parked[w->parked_count - 1];
    if (last.pc == pc && last.frame == w->frame && last.wait == Wait::kReady && !last.released) {
      last.mask |= mask;
      return;
    }
  }
  Push(w, mask, pc);
}

void Park(Warp* w, const Inst* pc, Wait wait) {
  Push(w, w->mask, pc);
  w->parked[w->parked_count - 1].wait = wait;
  w->mask = 0;
}

const Inst* Next(Warp* w) {
  uint32_t best = Best(w);
  if (best == kLanes && TryAgain(w)) best = Best(w);
  if (best == kLanes && ReleaseWarpBarrier(w)) best = Best(w);
  if (best != kLanes) return Take(w, best);
  w->mask = 0;
  w->stop = w->live == 0 ? Stop::kDone : Stop::kBlocked;
  return nullptr;
}

const Inst* NextInTurn(Warp* w) {
  for (uint32_t i = 0; i < w->parked_count; ++i) {
    if (MayRun(w->parked[i])) return Take(w, i);
  }
  return Next(w);
}

const Inst* Continue(Warp* w, const Inst* pc) {
  if (w->parked_count == 0) return pc;
  for (uint32_t i = 0; i < w->parked_count;) {
    const Group& group = w->parked[i];
    if (MayRun(group) && group.pc == pc && group.frame == w->frame) {
      w->mask |= group.mask;
      RemoveGroup(w, i);
    } else {
      ++i;
    }
  }
  if (w->turn.fair) return pc;
  if (w->turn.rest != 0 && --w->turn.rest == 0) TryAgain(w);
  Group current;
  current.pc = pc;
  current.frame = w->frame;
  const uint32_t best = Best(w);
  if (best == kLanes || !Before(w->parked[best], current)) return pc;
  Park(w, pc);
  return Next(w);
}

// A round that let lanes go is a success: the next one comes at once.
void NoteRound(const Inst* branch, Warp* w) {
  w->turn.spin_at = branch;
  w->turn.spin_mask = w->mask;
  w->turn.patience = 1;
  w->turn.in_vain = false;
}

// The lanes that have left the loop run first, but not to their end. Once they have given back a
// lock, say, the waiting lanes take it in turn and meet them again behind it. Each round in vain
// doubles the number of meeting places that pass before the next one: a long way behind the loop
// costs few rounds, and an atomic of the warp brings the next round forward.
const Inst* WaitForOthers(Warp* w, const Inst* pc) {
  Park(w, pc, Wait::kOthers);
  w->turn.rest = w->turn.patience;
  w->turn.patience = std::min(2 * w->turn.patience, kPatienceMax);
  if (Best(w) != kLanes) {
    w->turn.in_vain = false;
    w->turn.fair = false;
    return Next(w);
  }
  w->stop = w->turn.in_vain ? Stop::kInVain : Stop::kYield;
  return nullptr;
}

bool MustWait(const Inst* ip, Warp* w, uint32_t sync_mask, const Inst** next) {
  if (w->parked_count == 0 || (sync_mask & w->live & ~w->mask) == 0) return false;
  if (w->resumed) {
    w->resumed = false;
    return false;
  }
  // Partners that wait at this very instruction come along.
  uint32_t elsewhere = 0;
  for (uint32_t i = 0; i < w->parked_count;) {
    const Group& group = w->parked[i];
    if (group.wait == Wait::kWarpSync && group.pc == ip && group.frame == w->frame) {
      w->mask |= group.mask;
      RemoveGroup(w, i);
    } else {
      elsewhere |= group.mask;
      ++i;
    }
  }
  if ((sync_mask & elsewhere & ~w->mask) == 0) return false;
  Park(w, ip, Wait::kWarpSync);
  w->parked[w->parked_count - 1].sync_mask = sync_mask;
  *next = Next(w);
  return true;
}

const Inst* ExitLanes(Warp* w) {
  const uint32_t lanes = w->mask;
  w->live &= ~lanes;
  if (w->live == 0 && w->frame->parent == nullptr) {  // all at once
    w->frame->lanes = 0;
    w->mask = 0;
    w->stop = Stop::kDone;
    CheckBarriers(w->block);
    return nullptr;
  }
  for (Frame* frame = w->frame; frame != nullptr;) {
    Frame* parent = frame->parent;
    LeaveFrame(w, frame, lanes);
    frame = parent;
  }
  w->mask = 0;
  CheckBarriers(w->block);
  return Next(w);
}

}  // namespace softgpu::exec
