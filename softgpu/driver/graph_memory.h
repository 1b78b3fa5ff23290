// Memory that a graph allocates: taken when the node is made, because its address is told then.
//
// It is the program's from a launch of the allocating node until a free, by a node, in a stream or
// at once. What is free when the last graph that knows it is gone goes back to the device; what is
// not, the program frees later. Thread safety: all functions.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>

namespace softgpu {

struct Allocation;
class Device;

class GraphMemory {
 public:
  // Null when the device's memory is used up.
  static std::shared_ptr<GraphMemory> Create(Device* device,
                                             const CUDA_MEM_ALLOC_NODE_PARAMS& params,
                                             uint64_t context_id);
  GraphMemory(const CUDA_MEM_ALLOC_NODE_PARAMS& params, std::shared_ptr<Allocation> memory);
  ~GraphMemory();

  const CUDA_MEM_ALLOC_NODE_PARAMS& params() const { return params_; }
  CUdeviceptr address() const { return params_.dptr; }
  // What the two kinds of nodes do.
  void Allocate();
  static void Free(CUdeviceptr address);

 private:
  CUDA_MEM_ALLOC_NODE_PARAMS params_;
  const std::shared_ptr<Allocation> memory_;
};

}  // namespace softgpu
