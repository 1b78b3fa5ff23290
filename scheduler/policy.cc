#include "scheduler/policy.h"

#include "scheduler/policies.h"

namespace scheduler {
namespace {

using Maker = const Policy* (*)();
constexpr Maker kPolicies[] = {FifoPolicy,       SrtfPolicy,     PackPolicy,     FairPolicy,
                               RoundRobinPolicy, PriorityPolicy, DeadlinePolicy, SharesPolicy};

}  // namespace

bool Policy::Before(const State& state, const Session& one, const Session& other) const {
  const Key a = {Rank(state, one), one.arrival};
  return a < Key{Rank(state, other), other.arrival};
}

const Policy* FindPolicy(const std::string& name) {
  for (const Maker maker : kPolicies) {
    if (name == maker()->name()) return maker();
  }
  return nullptr;
}

std::string PolicyNames() {
  std::string names;
  for (const Maker maker : kPolicies)
    names += (names.empty() ? "" : ", ") + std::string(maker()->name());
  return names;
}

}  // namespace scheduler
