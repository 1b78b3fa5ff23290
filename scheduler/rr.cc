// rr: round robin, a slice each, in the order in which they began to wait; lanes run at once.
#include "scheduler/policies.h"

namespace scheduler {
namespace {

class RoundRobin : public TimeSharing {
 public:
  const char* name() const override { return "rr"; }

  int64_t Rank(const State& state, const Session& session) const override {
    return WaitingSince(session);
  }
  bool Preempts(const State& state, const Session& waiting, const Session& running,
                int64_t now_us) const override {
    return now_us - running.granted_us >= state.limits.slice_us;
  }
  unsigned Width(const State& state, const Device& device) const override {
    return state.limits.lanes_max;
  }
};

}  // namespace

const Policy* RoundRobinPolicy() {
  static const RoundRobin policy;
  return &policy;
}

}  // namespace scheduler
