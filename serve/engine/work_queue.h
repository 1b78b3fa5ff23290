// Work on an engine's device, in order: kernels, matrix products, copies, memory of a step.
//
// The first failure is kept, and what follows it is not submitted, so that a step's code reads as
// the step; Finish() waits for the device and tells the failure. A queue lives while one step is
// submitted: its memory is allocated and freed in stream order, and goes with the queue.
// Thread safety: the device's thread alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "serve/engine/device.h"
#include "serve/engine/event.h"
#include "serve/engine/gemm_width.h"

namespace serve::engine {

// y[columns, out] = x[columns, in] times the transpose of weights[out, in], all row-major: a
// "column" of cuBLAS is a row here.
struct Product {
  const float* weights = nullptr;
  int32_t out = 0;
  int32_t in = 0;
  const float* x = nullptr;
  float* y = nullptr;
  int32_t columns = 0;  // REQUIRES: a multiple of the width's
};

class WorkQueue {
 public:
  // `staging`: pinned memory for Place(), which lives until the work is done.
  explicit WorkQueue(Device* device, std::span<std::byte> staging = {})
      : device_(device), staging_(staging) {}
  // Memory that is left is freed after the work before.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // `Arguments` have a LaunchOf() that says kernel, grid and block (kernels/llm/launch.h).
  template <typename Arguments>
  void Launch(Arguments arguments) {
    const auto launch = LaunchOf(arguments);
    LaunchKernel(launch.kernel, launch.grid, launch.block, &arguments);
  }
  void Multiply(const Product& product, const GemmWidth& width);
  // Copies bytes that may go after the call. Those that don't fit the staging memory make the host
  // wait for the work before.
  void Place(CUdeviceptr to, const void* from, size_t bytes);
  // The host's bytes must live until the work is done.
  void CopyIn(CUdeviceptr to, const void* from, size_t bytes);
  void CopyOut(void* to, CUdeviceptr from, size_t bytes);
  void Zero(CUdeviceptr at, size_t bytes);
  // Null after a failure.
  CUdeviceptr Allocate(size_t bytes);

  // Waits until all is done.
  absl::Status Finish();
  // Or leaves that to the event. After a failure all is done.
  absl::Status Submit(Event* done);

 private:
  void LaunchKernel(std::string_view kernel, const unsigned (&grid)[3], const unsigned (&block)[3],
                    void* arguments);
  template <typename Result>
  void Note(Result result, std::string_view what) {
    if (status_.ok()) status_ = device_->cuda().StatusOf(result, what);
  }

  Device* const device_;
  std::span<std::byte> staging_;  // what is left of it
  absl::Status status_;
  std::vector<CUdeviceptr> memory_;
};

}  // namespace serve::engine
