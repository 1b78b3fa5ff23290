#include "nvml/state.h"

#include <algorithm>
#include <cstring>

#include "nvml/vendor.h"

namespace nvml {

State& TheState() {
  static State* const state = new State;  // never destroyed: used to the end
  return *state;
}

nvmlReturn_t PutText(char* out, unsigned length, const std::string& text) {
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (length <= text.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}

nvmlReturn_t State::Init() {
  base::MutexLock lock(&mutex_);
  if (users_ == 0) {
    Snapshot snapshot;
    if (!TheSource().Read(&snapshot)) return NVML_ERROR_DRIVER_NOT_LOADED;
    if (snapshot.devices.size() > kDevicesMax) snapshot.devices.resize(kDevicesMax);
    snapshot_ = std::move(snapshot);
    read_at_ = Clock::now();
    if (const nvmlReturn_t found = FindHandles(); found != NVML_SUCCESS) return found;
  }
  ++users_;
  return NVML_SUCCESS;
}

nvmlReturn_t State::FindHandles() {
  handles_.clear();
  const Vendor& vendor = TheVendor();
  if (snapshot_.on_gpu) {
    if (vendor.nvmlInit_v2 == nullptr || vendor.nvmlDeviceGetHandleByUUID == nullptr)
      return NVML_ERROR_LIBRARY_NOT_FOUND;
    if (const nvmlReturn_t begun = vendor.nvmlInit_v2(); begun != NVML_SUCCESS) return begun;
  }
  for (size_t i = 0; i < snapshot_.devices.size(); ++i) {
    nvmlDevice_t handle = reinterpret_cast<nvmlDevice_t>(&soft_handles_[i]);
    if (snapshot_.on_gpu) {
      const nvmlReturn_t found =
          vendor.nvmlDeviceGetHandleByUUID(snapshot_.devices[i].uuid.c_str(), &handle);
      if (found != NVML_SUCCESS) return found;
    }
    handles_.push_back(handle);
  }
  return NVML_SUCCESS;
}

nvmlReturn_t State::Shutdown() {
  base::MutexLock lock(&mutex_);
  if (users_ == 0) return NVML_ERROR_UNINITIALIZED;
  const Vendor& vendor = TheVendor();
  if (--users_ == 0 && snapshot_.on_gpu && vendor.nvmlShutdown != nullptr)
    return vendor.nvmlShutdown();
  return NVML_SUCCESS;
}

bool State::initialised() const {
  base::MutexLock lock(&mutex_);
  return users_ != 0;
}

bool State::on_gpu() const {
  base::MutexLock lock(&mutex_);
  return snapshot_.on_gpu;
}

unsigned State::Count() const {
  base::MutexLock lock(&mutex_);
  return static_cast<unsigned>(handles_.size());
}

nvmlReturn_t State::HandleOf(size_t index, nvmlDevice_t* handle) const {
  base::MutexLock lock(&mutex_);
  return index < handles_.size() ? Put(handle, handles_[index]) : NVML_ERROR_INVALID_ARGUMENT;
}

size_t State::PlaceOf(nvmlDevice_t handle) const {
  return static_cast<size_t>(std::find(handles_.begin(), handles_.end(), handle) -
                             handles_.begin());
}

nvmlReturn_t State::IndexOf(nvmlDevice_t handle, unsigned* index) const {
  base::MutexLock lock(&mutex_);
  const size_t place = PlaceOf(handle);
  return place < handles_.size() ? Put(index, static_cast<unsigned>(place))
                                 : NVML_ERROR_INVALID_ARGUMENT;
}

// While lanewayd is being replaced, the last figures hold. Devices neither come nor go.
nvmlReturn_t State::Find(nvmlDevice_t handle, Device* device) {
  base::MutexLock lock(&mutex_);
  const size_t place = PlaceOf(handle);
  if (place >= handles_.size()) return NVML_ERROR_INVALID_ARGUMENT;
  if (Clock::now() - read_at_ > kFreshMs) {
    Snapshot fresh;
    if (TheSource().Read(&fresh) && fresh.devices.size() == handles_.size())
      snapshot_ = std::move(fresh);
    read_at_ = Clock::now();
  }
  *device = snapshot_.devices[place];
  return NVML_SUCCESS;
}

std::vector<Device> State::Devices() const {
  base::MutexLock lock(&mutex_);
  return snapshot_.devices;
}

}  // namespace nvml
