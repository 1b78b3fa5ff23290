#include "serve/engine/event.h"

namespace serve::engine {

absl::StatusOr<std::unique_ptr<Event>> Event::Create(Device* device) {
  CUevent event = nullptr;
  const Cuda& cuda = device->cuda();
  const absl::Status status =
      cuda.StatusOf(cuda.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "making an event");
  if (!status.ok()) return status;
  return std::unique_ptr<Event>(new Event(device, event));
}

absl::Status Event::Record() {
  const Cuda& cuda = device_->cuda();
  return cuda.StatusOf(cuda.cuEventRecord(event_, device_->stream()), "marking a step's end");
}

absl::Status Event::Wait() {
  const Cuda& cuda = device_->cuda();
  return cuda.StatusOf(cuda.cuEventSynchronize(event_), "computing");
}

}  // namespace serve::engine
