// A kernel node's parameters, as the driver takes them: the arguments packed in one block.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstddef>

namespace worker {

// Function, shape and arguments of one launch.
struct KernelLaunch {
  CUfunction function = nullptr;
  unsigned grid[3] = {};
  unsigned block[3] = {};
  unsigned shared_bytes = 0;
  const void* params = nullptr;  // packed
  unsigned param_bytes = 0;
};

// The driver copies the block of arguments while it is called.
class KernelNode {
 public:
  explicit KernelNode(const KernelLaunch& launch)
      : bytes_(launch.param_bytes),
        extra_{CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<void*>(launch.params),
               CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes_, CU_LAUNCH_PARAM_END} {
    node_.func = launch.function;
    node_.gridDimX = launch.grid[0];
    node_.gridDimY = launch.grid[1];
    node_.gridDimZ = launch.grid[2];
    node_.blockDimX = launch.block[0];
    node_.blockDimY = launch.block[1];
    node_.blockDimZ = launch.block[2];
    node_.sharedMemBytes = launch.shared_bytes;
    node_.extra = launch.param_bytes == 0 ? nullptr : extra_;
  }
  KernelNode(const KernelNode&) = delete;
  const CUDA_KERNEL_NODE_PARAMS& params() const { return node_; }

 private:
  size_t bytes_;
  void* extra_[5];
  CUDA_KERNEL_NODE_PARAMS node_{};
};

}  // namespace worker
