#include "daemon/control/children.h"

#include <algorithm>
#include <cassert>

namespace control {

void Worker::Transition(WorkerState to) {
  assert(IsLegal(state, to));
  state = to;
}

void Children::Stay(uint32_t worker) {
  const std::map<uint32_t, Worker>::const_iterator found = workers().find(worker);
  if (found == workers().end()) return;
  assert(found->second.state == WorkerState::kLeaving);
  Transition(worker, found->second.served ? WorkerState::kReady : WorkerState::kStarting);
}

// A worker whose connection is gone is ending by itself.
void Children::Retire(uint32_t worker) {
  Transition(worker, WorkerState::kRetired);
  (void)Send(worker, ipc::control::Stop{});
}

WorkerLoss LossOf(const Worker& worker) {
  const bool served = worker.served || worker.state == WorkerState::kListing;
  return {served, worker.state == WorkerState::kRetired, worker.failure};
}

bool Children::HasWorker() const {
  return std::any_of(workers().begin(), workers().end(), [](const auto& entry) {
    return !entry.second.own && entry.second.TakesSessions();
  });
}

const Worker* Children::Ready(uint32_t worker) const {
  const std::map<uint32_t, Worker>::const_iterator found = workers().find(worker);
  const bool ready =
      found != workers().end() && found->second.served && found->second.process.connection.valid();
  return ready ? &found->second : nullptr;
}

const Worker* Children::Current() const {
  for (const std::pair<const uint32_t, Worker>& entry : workers()) {
    const Worker& worker = entry.second;
    if (!worker.own && worker.TakesSessions() && Ready(entry.first) != nullptr) return &worker;
  }
  return nullptr;
}

}  // namespace control
