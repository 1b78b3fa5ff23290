// The launch interface from before CUDA 4, on top of cuLaunchKernel: block, shared memory and
// parameters belong to the function, and are set by calls of their own (PyCUDA uses it).
//
// A driver has one OldLaunches. Offsets and sizes are checked here, everything else at the launch,
// by cuLaunchKernel. A function that is unloaded leaves its settings behind; a later function of
// the same handle sets them anew. Thread safety: any thread; a launch has the settings of one
// moment.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "ipc/calls/vendor.h"

namespace ipc {

class OldLaunches {
 public:
  struct Launch {
    std::array<unsigned, 3> block = {1, 1, 1};
    unsigned shared_bytes = 0;
    std::vector<std::byte> parameters;
  };

  static OldLaunches& Process() {
    static OldLaunches* const launches = new OldLaunches;
    return *launches;
  }

  CUresult SetBlock(CUfunction function, int x, int y, int z) {
    if (x <= 0 || y <= 0 || z <= 0) return CUDA_ERROR_INVALID_VALUE;
    const base::MutexLock lock(&mutex_);
    launches_[function].block = {static_cast<unsigned>(x), static_cast<unsigned>(y),
                                 static_cast<unsigned>(z)};
    return CUDA_SUCCESS;
  }
  CUresult SetShared(CUfunction function, unsigned bytes) {
    const base::MutexLock lock(&mutex_);
    launches_[function].shared_bytes = bytes;
    return CUDA_SUCCESS;
  }
  CUresult SetSize(CUfunction function, unsigned bytes) {
    if (bytes > kBytesMax) return CUDA_ERROR_INVALID_VALUE;
    const base::MutexLock lock(&mutex_);
    launches_[function].parameters.resize(bytes);
    return CUDA_SUCCESS;
  }
  // Also before the size is set.
  CUresult SetBytes(CUfunction function, int offset, const void* from, size_t bytes) {
    const size_t at = static_cast<size_t>(offset);
    if (offset < 0 || from == nullptr || at > kBytesMax || bytes > kBytesMax - at)
      return CUDA_ERROR_INVALID_VALUE;
    const base::MutexLock lock(&mutex_);
    std::vector<std::byte>& parameters = launches_[function].parameters;
    if (parameters.size() < at + bytes) parameters.resize(at + bytes);
    std::memcpy(parameters.data() + at, from, bytes);
    return CUDA_SUCCESS;
  }
  Launch Of(CUfunction function) {
    const base::MutexLock lock(&mutex_);
    return launches_[function];
  }

 private:
  static constexpr size_t kBytesMax = 4096;  // of parameters, as it was then

  base::Mutex mutex_;
  std::unordered_map<CUfunction, Launch> launches_ GUARDED_BY(mutex_);
};

// The calls, by a driver's own cuFuncGetAttribute, which knows its functions, and cuLaunchKernel.
template <auto* get_attribute, auto* launch_kernel>
class OldCalls {
 public:
  static CUresult SetBlock(CUfunction function, int x, int y, int z) {
    const CUresult result = Check(function);
    return result == CUDA_SUCCESS ? OldLaunches::Process().SetBlock(function, x, y, z) : result;
  }
  static CUresult SetShared(CUfunction function, unsigned bytes) {
    const CUresult result = Check(function);
    return result == CUDA_SUCCESS ? OldLaunches::Process().SetShared(function, bytes) : result;
  }
  static CUresult SetSize(CUfunction function, unsigned bytes) {
    const CUresult result = Check(function);
    return result == CUDA_SUCCESS ? OldLaunches::Process().SetSize(function, bytes) : result;
  }
  static CUresult SetBytes(CUfunction function, int offset, const void* from, size_t bytes) {
    const CUresult result = Check(function);
    if (result != CUDA_SUCCESS) return result;
    return OldLaunches::Process().SetBytes(function, offset, from, bytes);
  }
  // `width` x `height` blocks.
  static CUresult Launch(CUfunction function, int width, int height, CUstream stream) {
    if (width <= 0 || height <= 0) return CUDA_ERROR_INVALID_VALUE;
    OldLaunches::Launch launch = OldLaunches::Process().Of(function);
    size_t bytes = launch.parameters.size();
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, launch.parameters.data(),
                     CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    const auto& [x, y, z] = launch.block;
    return launch_kernel(function, static_cast<unsigned>(width), static_cast<unsigned>(height), 1,
                         x, y, z, launch.shared_bytes, stream, nullptr,
                         bytes == 0 ? nullptr : extra);
  }

 private:
  static CUresult Check(CUfunction function) {
    int registers = 0;
    return get_attribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
  }
};

}  // namespace ipc
