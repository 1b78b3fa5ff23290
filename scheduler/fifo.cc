// fifo: whoever came first runs until it leaves; the others only while it has nothing to do.
#include "scheduler/policies.h"

namespace scheduler {
namespace {

class Fifo : public Policy {
 public:
  const char* name() const override { return "fifo"; }

  int64_t Rank(const State& state, const Session& session) const override {
    return static_cast<int64_t>(session.arrival);
  }
  bool Preempts(const State& state, const Session& waiting, const Session& running,
                int64_t now_us) const override {
    return waiting.arrival < running.arrival;
  }
  bool Displaces(const State& state, const Session& waiting, const Session& resident,
                 int64_t now_us) const override {
    return waiting.arrival < resident.arrival;
  }
  bool DisplacesLater() const override { return false; }
  bool PromisesTurn() const override { return false; }  // it promises the order
};

}  // namespace

const Policy* FifoPolicy() {
  static const Fifo policy;
  return &policy;
}

}  // namespace scheduler
