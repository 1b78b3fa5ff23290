#include "daemon/worker/iteration_ends.h"

#include <algorithm>
#include <utility>

#include "ipc/futex.h"

namespace worker {

CUevent IterationEnds::TakeEvent() {
  CUevent event = nullptr;
  if (!spare_.empty()) {
    event = spare_.back();
    spare_.pop_back();
  } else if (environment_.driver->cuEventCreate(&event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) {
    return nullptr;
  }
  return event;
}

void IterationEnds::OnBoundary(CUstream stream, const Boundary& boundary) {
  CountEnded();
  CUevent event = nullptr;
  if (stream != nullptr && pending_.size() < kPendingMax) event = TakeEvent();
  if (event != nullptr && environment_.driver->cuEventRecord(event, stream) != CUDA_SUCCESS)
    spare_.push_back(std::exchange(event, nullptr));
  pending_.push_back({boundary, event});
}

void IterationEnds::CountEnded() {
  while (!pending_.empty()) {
    const Pending& first = pending_.front();
    if (first.event != nullptr &&
        environment_.driver->cuEventQuery(first.event) == CUDA_ERROR_NOT_READY) {
      return;
    }
    Count(first);
    pending_.pop_front();
  }
}

// The device's clock tells how far its ends lie apart. Where it is not behind the ring, the ring's
// own time is taken, so that errors do not add up.
void IterationEnds::Count(const Pending& pending) {
  const Boundary& boundary = pending.boundary;
  int64_t end_us = boundary.ended_us;
  float passed_ms = 0;
  if (pending.event != nullptr && last_ != nullptr &&
      environment_.driver->cuEventElapsedTime_v2(&passed_ms, last_, pending.event) ==
          CUDA_SUCCESS) {
    const int64_t now_us = ipc::MonotonicNs() / 1000;
    end_us = last_us_ + static_cast<int64_t>(passed_ms * 1000);
    end_us = std::max(boundary.ended_us, std::min(end_us, now_us));
  }
  // What the device still did of the iteration before when this one began is not its own.
  const int64_t before_us = std::max<int64_t>(0, last_us_ - boundary.began_us);
  const int64_t took_us =
      static_cast<int64_t>(boundary.held_us) + (end_us - boundary.ended_us) - before_us;
  ipc::CountIteration(times_, static_cast<uint64_t>(end_us),
                      static_cast<uint64_t>(std::max<int64_t>(0, took_us)));
  if (last_ != nullptr) spare_.push_back(last_);
  last_ = pending.event;
  last_us_ = end_us;
}

void IterationEnds::Clear() {
  for (const Pending& pending : pending_) Count(pending);
  pending_.clear();
  if (last_ != nullptr) spare_.push_back(std::exchange(last_, nullptr));
  for (const CUevent event : spare_) environment_.driver->cuEventDestroy_v2(event);
  spare_.clear();
}

}  // namespace worker
