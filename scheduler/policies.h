// Each policy's one instance, and what several policies share. Thread safety: immutable.
#pragma once

#include <algorithm>

#include "scheduler/policy.h"

namespace scheduler {

const Policy* FifoPolicy();
const Policy* SrtfPolicy();
const Policy* PackPolicy();
const Policy* FairPolicy();
const Policy* RoundRobinPolicy();
const Policy* PriorityPolicy();
const Policy* DeadlinePolicy();
const Policy* SharesPolicy();

// Since when a session waits for what it waits for.
inline int64_t WaitingSince(const Session& session) {
  if (session.phase == Phase::kQueued) return session.arrived_us;
  return session.need != Need::kNone ? session.need_us : session.waiting_us;
}

// Virtual time with what was served since the last report.
inline int64_t VirtualNow(const Session& session, int64_t now_us) {
  if (!session.granted || !session.runnable) return session.virtual_us;
  const int64_t since = now_us - std::max(session.granted_us, session.progress_us);
  return session.virtual_us + since * 100 / std::max<int64_t>(1, session.about.weight);
}

// Memory changes hands in slices, too, of what its owner was served with it: moving it has to cost
// little beside what it was moved for. Who is hardly ever served keeps it for some slices of time.
inline bool SliceDisplaces(const State& state, const Session& waiting, const Session& resident,
                           int64_t now_us) {
  constexpr int64_t kServedPerMove = 8;
  constexpr int64_t kSlicesMax = 16;
  const int64_t slice = state.limits.swap_slice_us;
  if (resident.need != Need::kNone || now_us - WaitingSince(waiting) < slice) return false;
  const int64_t stayed = now_us - resident.resident_us;
  const int64_t served = resident.busy_us - resident.busy_before_us;
  return stayed >= slice && (stayed >= kSlicesMax * slice ||
                             served >= std::max(slice, kServedPerMove * resident.moved_in_us));
}

// Policies that share time and nothing else: a look after every slice, memory in longer ones.
class TimeSharing : public Policy {
 public:
  int64_t RecheckUs(const State& state, const Session& running) const override {
    return state.limits.slice_us;
  }
  bool Displaces(const State& state, const Session& waiting, const Session& resident,
                 int64_t now_us) const override {
    return SliceDisplaces(state, waiting, resident, now_us);
  }
};

}  // namespace scheduler
