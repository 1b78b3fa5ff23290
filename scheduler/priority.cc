// priority: classes, the most urgent first; in a class a slice each. Waiting makes up for classes:
// Limits::aging_us is worth one. The order of those who wait does not change with time, since all
// age alike.
#include "scheduler/policies.h"

namespace scheduler {
namespace {

class Priority : public Policy {
 public:
  const char* name() const override { return "priority"; }

  int64_t Rank(const State& state, const Session& session) const override {
    return RankSince(state, session, WaitingSince(session));
  }
  bool Preempts(const State& state, const Session& waiting, const Session& running,
                int64_t now_us) const override {
    // As if the running session began to wait now.
    const bool first = Rank(state, waiting) < RankSince(state, running, now_us);
    const bool urgent = waiting.about.priority < running.about.priority;
    return first && (urgent || now_us - running.granted_us >= state.limits.slice_us);
  }
  int64_t RecheckUs(const State& state, const Session& running) const override {
    return state.limits.slice_us;
  }
  bool Displaces(const State& state, const Session& waiting, const Session& resident,
                 int64_t now_us) const override {
    return waiting.about.priority < resident.about.priority ||
           (Rank(state, waiting) < RankSince(state, resident, now_us) &&
            SliceDisplaces(state, waiting, resident, now_us));
  }

 private:
  static int64_t RankSince(const State& state, const Session& session, int64_t since_us) {
    return since_us + session.about.priority * state.limits.aging_us;
  }
};

}  // namespace

const Policy* PriorityPolicy() {
  static const Priority policy;
  return &policy;
}

}  // namespace scheduler
