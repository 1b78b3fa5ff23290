// fair: the sessions of a lane have equal service time, over weight (Salus 2.4.3); lanes run at
// once. The error stays below a slice and an iteration: whoever runs gives way when it is a slice
// ahead.
#include "scheduler/policies.h"

namespace scheduler {
namespace {

class Fair : public TimeSharing {
 public:
  const char* name() const override { return "fair"; }

  int64_t Rank(const State& state, const Session& session) const override {
    return session.virtual_us;
  }
  bool Preempts(const State& state, const Session& waiting, const Session& running,
                int64_t now_us) const override {
    return waiting.virtual_us + state.limits.slice_us <= VirtualNow(running, now_us);
  }
  unsigned Width(const State& state, const Device& device) const override {
    return state.limits.lanes_max;
  }
};

}  // namespace

const Policy* FairPolicy() {
  static const Fair policy;
  return &policy;
}

}  // namespace scheduler
