// Nodes that allocate and free memory.
#include <memory>
#include <utility>

#include "softgpu/driver/api.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/graph_handles.h"
#include "softgpu/driver/graph_memory.h"
#include "softgpu/driver/handles.h"
#include "softgpu/driver/memory_map.h"

namespace softgpu::api {

CUresult cuGraphAddMemAllocNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  std::shared_ptr<Context> context;
  Device* device = nullptr;
  if (params == nullptr || params->bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  const CUmemPoolProps& pool = params->poolProps;
  if (pool.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      pool.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      pool.handleTypes != CU_MEM_HANDLE_TYPE_NONE) {
    return Fail(CUDA_ERROR_NOT_SUPPORTED, "graphs allocate device memory of this process");
  }
  result = FindDevice(pool.location.id, &device);
  if (result != CUDA_SUCCESS) return result;
  std::shared_ptr<GraphMemory> memory = GraphMemory::Create(device, *params, context->id());
  if (memory == nullptr) return Fail(CUDA_ERROR_OUT_OF_MEMORY, "no room for the graph's memory");
  const CUdeviceptr address = memory->address();
  result = AddWork({out, graph, dependencies, count}, AllocateWork{std::move(memory)});
  if (result == CUDA_SUCCESS) params->dptr = address;
  return result;
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  std::shared_ptr<GraphNode> node;
  AllocateWork* work = nullptr;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindWork(handle, &node, &work);
  if (result == CUDA_SUCCESS) *params = work->memory->params();
  return result;
}

CUresult cuGraphAddMemFreeNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                               size_t count, CUdeviceptr address) {
  const std::shared_ptr<Allocation> memory = Driver::Get().memory_map().Find(address);
  if (memory == nullptr || memory->base != address || !memory->graph_free)
    return Fail(CUDA_ERROR_INVALID_VALUE, "no graph allocated this memory");
  return AddWork({out, graph, dependencies, count}, FreeWork{address});
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode handle, CUdeviceptr* address) {
  std::shared_ptr<GraphNode> node;
  FreeWork* work = nullptr;
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindWork(handle, &node, &work);
  if (result == CUDA_SUCCESS) *address = work->address;
  return result;
}

}  // namespace softgpu::api
