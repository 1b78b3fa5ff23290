// Kernel launches: what CUDA checks at the call, and the operation that runs the grid.
//
// Thread safety: functions without state.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>

#include "softgpu/driver/operation.h"
#include "softgpu/exec/launch.h"

namespace softgpu {

class Context;
class Function;
class Stream;

struct LaunchRequest {
  Dim3 grid, block;
  uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  void** kernel_params = nullptr;  // one pointer per parameter
  void** extra = nullptr;          // or one packed buffer
};

// Blocks of this shape that one multiprocessor holds at a time.
int BlocksPerMultiprocessor(Function& function, uint64_t block_threads, uint64_t dynamic_shared_bytes);

// Checks the request, copies its parameters, and makes the operation for `stream`.
CUresult MakeLaunch(const std::shared_ptr<Function>& function, const std::shared_ptr<Stream>& stream,
                    const LaunchRequest& request, std::unique_ptr<Operation>* operation);

}  // namespace softgpu
