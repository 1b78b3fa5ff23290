// A place in a device's work that the host can wait for, while later work is submitted.
//
// Thread safety: the device's thread alone. Ownership: the device outlives its events.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "serve/engine/device.h"

namespace serve::engine {

class Event {
 public:
  static absl::StatusOr<std::unique_ptr<Event>> Create(Device* device);
  ~Event() { device_->cuda().cuEventDestroy_v2(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // After all work that was submitted so far.
  absl::Status Record();
  // Until that work is done.
  absl::Status Wait();

 private:
  Event(Device* device, CUevent event) : device_(device), event_(event) {}

  Device* const device_;
  const CUevent event_;
};

}  // namespace serve::engine
