// Nodes that allocate and free memory (shim/graphs/memory.h). The client keeps no pool of such
// memory: it goes back with its graph, so the attributes of the pool are 0.
#include "shim/graphs/memory.h"

#include <memory>
#include <utility>

#include "shim/driver/graph_lookup.h"
#include "shim/driver/local.h"
#include "shim/driver/ready.h"

namespace local {

using shim::graphs::AllocateWork;
using shim::graphs::FreeWork;
using shim::graphs::GraphMemory;

CUresult cuGraphAddMemAllocNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  shim::Context* current = nullptr;
  uint64_t value = 0;
  if (params == nullptr || params->bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = shim::State::Process().Current(&current, &value);
  if (result != CUDA_SUCCESS) return result;
  const CUmemPoolProps& pool = params->poolProps;
  if (pool.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      pool.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      pool.handleTypes != CU_MEM_HANDLE_TYPE_NONE) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  shim::Context of_pool;
  result = OrdinalOf(pool.location.id, &of_pool.device);
  if (result != CUDA_SUCCESS) return result;
  of_pool.wire = shim::State::WireOfDevice(of_pool.device);
  std::shared_ptr<GraphMemory> memory;
  result = GraphMemory::Create(of_pool, value, *params, &memory);
  if (result != CUDA_SUCCESS) return result;
  const CUdeviceptr address = memory->address();
  result = AddWork({out, graph, dependencies, count}, AllocateWork{std::move(memory)});
  if (result == CUDA_SUCCESS) params->dptr = address;
  return result;
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  std::shared_ptr<Node> node;
  AllocateWork* work = nullptr;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindWork(handle, &node, &work);
  if (result == CUDA_SUCCESS) *params = work->memory->params();
  return result;
}

CUresult cuGraphAddMemFreeNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                               size_t count, CUdeviceptr address) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  if (!GraphMemory::IsFree(address)) return CUDA_ERROR_INVALID_VALUE;
  return AddWork({out, graph, dependencies, count}, FreeWork{address});
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode handle, CUdeviceptr* address) {
  std::shared_ptr<Node> node;
  FreeWork* work = nullptr;
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindWork(handle, &node, &work);
  if (result == CUDA_SUCCESS) *address = work->address;
  return result;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute, void* value) {
  int ordinal = 0;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *static_cast<cuuint64_t*>(value) = 0;
  return OrdinalOf(device, &ordinal);
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute, void* value) {
  int ordinal = 0;
  if (value == nullptr || *static_cast<cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
  return OrdinalOf(device, &ordinal);
}

CUresult cuDeviceGraphMemTrim(CUdevice device) {
  int ordinal = 0;
  return OrdinalOf(device, &ordinal);
}

}  // namespace local
