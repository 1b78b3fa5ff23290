#include "daemon/worker/deferred_frees.h"

#include <utility>

#include "ipc/driver_table.h"

namespace worker {

DeferredFrees::~DeferredFrees() {
  Clear();
  for (CUevent event : spare_events_) environment_.driver->cuEventDestroy_v2(event);
}

CUresult DeferredFrees::Free(const std::vector<StreamTable::Stream*>& after,
                             std::function<void()> free) {
  const ipc::DriverTable& driver = *environment_.driver;
  Pending pending{std::move(free), {}};
  for (StreamTable::Stream* stream : after) {
    if (driver.cuStreamQuery(stream->driver) == CUDA_SUCCESS) continue;
    CUevent event = nullptr;
    if (spare_events_.empty()) {
      const CUresult result = driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
      if (result != CUDA_SUCCESS) return result;
    } else {
      event = spare_events_.back();
      spare_events_.pop_back();
    }
    driver.cuEventRecord(event, stream->driver);
    pending.events.push_back(event);
  }
  if (pending.events.empty()) {
    pending.free();
    return CUDA_SUCCESS;
  }
  pending_.push_back(std::move(pending));
  return CUDA_SUCCESS;
}

bool DeferredFrees::Poll() {
  while (!pending_.empty()) {
    std::vector<CUevent>& events = pending_.front().events;
    while (!events.empty()) {
      if (environment_.driver->cuEventQuery(events.back()) == CUDA_ERROR_NOT_READY) return false;
      spare_events_.push_back(events.back());
      events.pop_back();
    }
    const std::function<void()> free = std::move(pending_.front().free);
    pending_.pop_front();
    free();
  }
  return true;
}

void DeferredFrees::Clear() {
  for (Pending& pending : pending_) {
    spare_events_.insert(spare_events_.end(), pending.events.begin(), pending.events.end());
  }
  pending_.clear();
}

}  // namespace worker
