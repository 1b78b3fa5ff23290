// The state of the library between nvmlInit and nvmlShutdown: devices, their handles, and their
// figures, which are read again when they are older than kFreshMs.
//
// A handle of a GPU is the vendor's own, because the vendor's library gets it in calls that we pass
// on. Thread safety: any thread.
#pragma once

#include <chrono>
#include <vector>

#include "base/mutex.h"
#include "nvml/api.h"
#include "nvml/source.h"

namespace nvml {

class State {
 public:
  static constexpr size_t kDevicesMax = 64;
  // A tool reads some twenty figures of a device at once, and again after a second.
  static constexpr std::chrono::milliseconds kFreshMs{100};

  nvmlReturn_t Init();
  nvmlReturn_t Shutdown();
  bool initialised() const;
  bool on_gpu() const;

  // REQUIRES of all below: initialised().
  unsigned Count() const;
  nvmlReturn_t HandleOf(size_t index, nvmlDevice_t* handle) const;
  // INVALID_ARGUMENT: no handle of ours, or no place for the answer.
  nvmlReturn_t IndexOf(nvmlDevice_t handle, unsigned* index) const;
  // The device as it is now; after an error `device` is unchanged.
  nvmlReturn_t Find(nvmlDevice_t handle, Device* device);
  std::vector<Device> Devices() const;

 private:
  using Clock = std::chrono::steady_clock;
  nvmlReturn_t FindHandles() REQUIRES(mutex_);
  size_t PlaceOf(nvmlDevice_t handle) const REQUIRES(mutex_);

  mutable base::Mutex mutex_;
  unsigned users_ GUARDED_BY(mutex_) = 0;  // nvmlInit is counted
  Snapshot snapshot_ GUARDED_BY(mutex_);
  std::vector<nvmlDevice_t> handles_ GUARDED_BY(mutex_);
  Clock::time_point read_at_ GUARDED_BY(mutex_);
  char soft_handles_[kDevicesMax] = {};  // their addresses are the handles of the software GPU
};

State& TheState();

// For a null pointer INVALID_ARGUMENT, else stores.
template <class T>
nvmlReturn_t Put(T* out, T value) {
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *out = value;
  return NVML_SUCCESS;
}

// A text with its zero into a buffer of `length`, or INSUFFICIENT_SIZE.
nvmlReturn_t PutText(char* out, unsigned length, const std::string& text);

// The functions of the table that are ours, under the names of nvml.h.
namespace ours {
#define ALWAYS(name) decltype(::name) name;
#define OURS ALWAYS
#define ANSWERED ALWAYS
#define DEVICE(name)
#define SETTING(name)
#include "ipc/calls/nvml.inc"
}  // namespace ours

}  // namespace nvml
