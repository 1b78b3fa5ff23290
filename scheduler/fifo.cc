// fifo: whoever came first.
#include <cassert>

#include "scheduler/scheduler.h"

namespace scheduler {
namespace {

class Fifo : public Policy {
 public:
  const char* name() const override { return "fifo"; }

  SessionId Next(const State& state, int64_t now_us) const override {
    const std::pair<const SessionId, Session>* first = nullptr;
    for (const std::pair<const SessionId, Session>& entry : state.sessions) {
      if (entry.second.phase != Phase::kQueued) continue;
      if (first == nullptr || entry.second.arrival < first->second.arrival) first = &entry;
    }
    assert(first != nullptr);
    return first->first;
  }
};

}  // namespace

std::unique_ptr<Policy> MakePolicy(const std::string& name) {
  if (name == "fifo") return std::make_unique<Fifo>();
  return nullptr;
}

std::string PolicyNames() { return "fifo"; }

}  // namespace scheduler
