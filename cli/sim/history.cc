#include "cli/sim/history.h"

#include "base/find.h"

namespace sim {

scheduler::Estimate History::Of(const std::string& command) const {
  return base::FindOr(commands_, command, scheduler::Estimate());
}

void History::Learn(const std::string& command, const scheduler::Estimate& run) {
  const auto [entry, is_new] = commands_.try_emplace(command, run);
  if (is_new) return;
  scheduler::Estimate* const known = &entry->second;
  known->persistent_bytes = (known->persistent_bytes + run.persistent_bytes) / 2;
  known->ephemeral_bytes = (known->ephemeral_bytes + run.ephemeral_bytes) / 2;
  known->iteration_us = (known->iteration_us + run.iteration_us) / 2;
  known->total_us = (known->total_us + run.total_us) / 2;
}

}  // namespace sim
