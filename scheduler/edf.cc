// edf: earliest deadline first, for serving sessions. A deadline counts from when the work is
// there; a session without one is due Limits::aging_us after it began to wait, so it has its turn,
// too.
#include "scheduler/policies.h"

namespace scheduler {
namespace {

class Deadline : public Policy {
 public:
  const char* name() const override { return "edf"; }

  int64_t Rank(const State& state, const Session& session) const override {
    return DueSince(state, session, WaitingSince(session));
  }
  bool Preempts(const State& state, const Session& waiting, const Session& running,
                int64_t now_us) const override {
    // Each iteration is a piece of work: it was there when the one before was done, and the first
    // one since it waits for its turn, or who is due later would push it out at once.
    const bool first_one = running.progress_us <= running.granted_us && running.waited_since_us > 0;
    const int64_t due = DueSince(
        state, running,
        first_one ? running.waited_since_us : std::max(running.granted_us, running.progress_us));
    const int64_t first = Rank(state, waiting);
    if (first < due && (waiting.about.deadline_us > 0 || running.about.deadline_us > 0))
      return true;
    return first < DueSince(state, running, now_us) &&
           now_us - running.granted_us >= state.limits.slice_us;
  }
  int64_t RecheckUs(const State& state, const Session& running) const override {
    return state.limits.slice_us;
  }
  bool Displaces(const State& state, const Session& waiting, const Session& resident,
                 int64_t now_us) const override {
    return (waiting.about.deadline_us > 0 && resident.about.deadline_us == 0) ||
           SliceDisplaces(state, waiting, resident, now_us);
  }

 private:
  static int64_t DueSince(const State& state, const Session& session, int64_t since_us) {
    return since_us +
           (session.about.deadline_us > 0 ? session.about.deadline_us : state.limits.aging_us);
  }
};

}  // namespace

const Policy* DeadlinePolicy() {
  static const Deadline policy;
  return &policy;
}

}  // namespace scheduler
