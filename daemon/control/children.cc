#include "daemon/control/children.h"

#include <algorithm>

namespace control {

bool Children::HasWorker() const {
  return std::any_of(workers().begin(), workers().end(),
                     [](const auto& entry) { return !entry.second.own && !entry.second.leaving; });
}

const Worker* Children::Ready(uint32_t worker) const {
  const std::map<uint32_t, Worker>::const_iterator found = workers().find(worker);
  const bool ready =
      found != workers().end() && found->second.ready && found->second.process.connection.valid();
  return ready ? &found->second : nullptr;
}

const Worker* Children::Current() const {
  for (const std::pair<const uint32_t, Worker>& entry : workers()) {
    const Worker& worker = entry.second;
    if (!worker.own && !worker.leaving && Ready(entry.first) != nullptr) return &worker;
  }
  return nullptr;
}

}  // namespace control
