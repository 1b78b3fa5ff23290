#include "softgpu/driver/graph_memory.h"

#include <utility>

#include "softgpu/driver/device_memory.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/memory_map.h"

namespace softgpu {

std::shared_ptr<GraphMemory> GraphMemory::Create(Device* device,
                                                 const CUDA_MEM_ALLOC_NODE_PARAMS& params,
                                                 uint64_t context_id) {
  std::shared_ptr<Allocation> memory =
      AllocateDeviceMemory(device, Allocation::Kind::kDevice, params.bytesize, context_id);
  if (memory == nullptr) return nullptr;
  memory->graph_free = true;
  return std::make_shared<GraphMemory>(params, std::move(memory));
}

GraphMemory::GraphMemory(const CUDA_MEM_ALLOC_NODE_PARAMS& params,
                         std::shared_ptr<Allocation> memory)
    : params_(params), memory_(std::move(memory)) {
  params_.dptr = memory_->base;
  params_.accessDescs = nullptr;
  params_.accessDescCount = 0;
}

GraphMemory::~GraphMemory() {
  Driver::Get().memory_map().Remove(memory_->base, [this](const Allocation& allocation) {
    return &allocation == memory_.get() && allocation.graph_free;
  });
}

// Back in the map, if the program's free took it out.
void GraphMemory::Allocate() {
  memory_->graph_free = false;
  Driver::Get().memory_map().Add(memory_);
}

void GraphMemory::Free(CUdeviceptr address) {
  const std::shared_ptr<Allocation> memory = Driver::Get().memory_map().Find(address);
  if (memory != nullptr && memory->base == address) memory->graph_free = true;
}

}  // namespace softgpu
