// What the runtime remembers per thread: the chosen device, the last error, launch configurations.
//
// Thread safety: a ThreadState belongs to its thread. It outlives the thread's C++ thread_local
// objects and, for the main thread, static destructors: programs free memory from both.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

namespace runtime {

// What <<<grid, block, shared, stream>>> leaves for the stub that launches the kernel.
struct LaunchConfiguration {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  cudaStream_t stream;
};

struct ThreadState {
  int device = 0;  // what cudaSetDevice chose
  cudaError_t last_error = cudaSuccess;
  cudaError_t sticky_error = cudaSuccess;
  std::vector<LaunchConfiguration> configurations;

  // The context that the call in progress uses, and its number (context.h). Set by UseContext.
  CUcontext context = nullptr;
  uint64_t context_key = 0;
  // The primary context that was current at the last call, for the fast path of UseContext.
  CUcontext primary = nullptr;
  int primary_device = 0;
  uint32_t primary_generation = 0;
};

ThreadState& Thread();

// Remembers a failure for cudaGetLastError and returns it.
cudaError_t Record(cudaError_t error);

}  // namespace runtime
