// Kernel launches: what CUDA checks at the call, and the operation that runs the grid.
//
// Thread safety: functions without state.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "softgpu/driver/operation.h"
#include "softgpu/driver/timing_table.h"
#include "softgpu/exec/launch.h"

namespace softgpu {

class Context;
class Function;
class Module;

struct LaunchRequest {
  Dim3 grid, block;
  uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  void** kernel_params = nullptr;  // one pointer per parameter
  void** extra = nullptr;          // or one packed buffer
};

// Blocks of this shape that one multiprocessor holds at a time.
int BlocksPerMultiprocessor(Function& function, uint64_t block_threads,
                            uint64_t dynamic_shared_bytes);

// A checked launch: everything that it needs, copied or kept alive.
struct KernelWork {
  std::shared_ptr<Function> function;
  std::shared_ptr<Module> module;
  std::shared_ptr<Context> context;
  Dim3 grid, block;
  uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  std::vector<std::byte> parameters;
  std::shared_ptr<DeviceHeap> heap;  // where the kernel uses one
  std::optional<TimedKernel> timed;  // in virtual time
};

// Checks the request and copies its parameters. The kernel must belong to `context`.
CUresult PrepareLaunch(const std::shared_ptr<Function>& function,
                       const std::shared_ptr<Context>& context, const LaunchRequest& request,
                       KernelWork* work);

// The operation that runs it, any number of times.
std::unique_ptr<Operation> MakeLaunch(KernelWork work);

}  // namespace softgpu
