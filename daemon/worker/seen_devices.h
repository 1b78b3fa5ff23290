// Which devices a client sees, and under which numbers: its job's in the order that `laneway run
// --gpus` names them, or all as they are. Everything behind the decoding of a message has the
// devices' own numbers. Thread safety: immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ipc/scheduling_terms.h"

namespace worker {

class SeenDevices {
 public:
  // `there`: how many the worker has, one at least.
  SeenDevices(const ipc::SchedulingTerms& terms, size_t there) {
    for (uint32_t i = 0; i < terms.device_count; ++i) {
      if (terms.devices[i] < there) devices_.push_back(terms.devices[i]);
    }
    if (devices_.empty()) all_ = there;
  }

  size_t count() const { return all_ != 0 ? all_ : devices_.size(); }
  // REQUIRES: seen < count().
  int At(size_t seen) const { return all_ != 0 ? static_cast<int>(seen) : devices_[seen]; }
  // The first number under which the device is seen. REQUIRES: it is.
  uint32_t NumberOf(int device) const {
    if (all_ != 0) return static_cast<uint32_t>(device);
    uint32_t seen = 0;
    while (seen + 1 < devices_.size() && devices_[seen] != device) ++seen;
    return seen;
  }

 private:
  size_t all_ = 0;  // other than 0: each as it is
  std::vector<int> devices_;
};

}  // namespace worker
