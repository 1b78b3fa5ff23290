// Nodes of any type, kernels, copies and memsets, in a graph and in an executable graph.
#include <memory>
#include <utility>
#include <vector>

#include "softgpu/driver/api.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/function.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/graph_exec.h"
#include "softgpu/driver/graph_handles.h"
#include "softgpu/driver/graph_node_work.h"
#include "softgpu/driver/handles.h"

namespace softgpu::api {
namespace {

// Pointers into the node, valid until its parameters change, as the manual says.
CUDA_KERNEL_NODE_PARAMS_v2 ParamsOfKernel(GraphNode& node, KernelWork& work) {
  if (node.param_pointers.empty()) {
    for (const ParamInfo& param : work.function->kernel().params()) {
      node.param_pointers.push_back(work.parameters.data() + param.offset);
    }
  }
  return {work.function->handle(),
          work.grid.x,
          work.grid.y,
          work.grid.z,
          work.block.x,
          work.block.y,
          work.block.z,
          work.dynamic_shared_bytes,
          node.param_pointers.empty() ? nullptr : node.param_pointers.data(),
          nullptr,
          nullptr,
          work.context->handle()};
}

// Memory nodes tell an address, which only a call of their own can.
CUresult AddNode(const NodePlace& place, CUgraphNodeParams* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (params->type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
    return api::cuGraphAddMemFreeNode(place.out, place.graph, place.dependencies, place.count,
                                      params->free.dptr);
  }
  if (params->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC) return AddParams(place, params);
  CUDA_MEM_ALLOC_NODE_PARAMS allocate = {params->alloc.poolProps, params->alloc.accessDescs,
                                         params->alloc.accessDescCount, params->alloc.bytesize, 0};
  const CUresult result = api::cuGraphAddMemAllocNode(place.out, place.graph, place.dependencies,
                                                      place.count, &allocate);
  params->alloc.dptr = allocate.dptr;
  return result;
}

}  // namespace

// --- any type

CUresult cuGraphAddNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData*, size_t count, CUgraphNodeParams* params) {
  return AddNode({out, graph, dependencies, count}, params);
}

CUresult cuGraphAddNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                        size_t count, CUgraphNodeParams* params) {
  return AddNode({out, graph, dependencies, count}, params);
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* params) {
  return SetParams(node, params);
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) {
  return SetExecParams(exec, node, params);
}

CUresult cuGraphAddEmptyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                             size_t count) {
  return AddWork({out, graph, dependencies, count}, EmptyWork{});
}

// --- kernels

CUresult cuGraphAddKernelNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return AddParams({out, graph, dependencies, count}, params);
}

CUresult cuGraphAddKernelNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                              size_t count, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS_v2 wide = Widen(*params);
  return AddParams({out, graph, dependencies, count}, &wide);
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v2* params) {
  std::shared_ptr<GraphNode> node;
  KernelWork* work = nullptr;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindWork(handle, &node, &work);
  if (result == CUDA_SUCCESS) *params = ParamsOfKernel(*node, *work);
  return result;
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v1* params) {
  CUDA_KERNEL_NODE_PARAMS_v2 wide = {};
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = api::cuGraphKernelNodeGetParams_v2(handle, &wide);
  if (result != CUDA_SUCCESS) return result;
  *params = {wide.func,      wide.gridDimX,  wide.gridDimY,       wide.gridDimZ,     wide.blockDimX,
             wide.blockDimY, wide.blockDimZ, wide.sharedMemBytes, wide.kernelParams, wide.extra};
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return SetParams(node, params);
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS_v2 wide = Widen(*params);
  return SetParams(node, &wide);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return SetExecParams(exec, node, params);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS_v2 wide = Widen(*params);
  return SetExecParams(exec, node, &wide);
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID id,
                                       CUkernelNodeAttrValue* value) {
  std::shared_ptr<GraphNode> node;
  KernelWork* work = nullptr;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindWork(handle, &node, &work);
  if (result != CUDA_SUCCESS) return result;
  *value = node->attributes[id];
  if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) value->cooperative = work->cooperative ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID id,
                                       const CUkernelNodeAttrValue* value) {
  std::shared_ptr<GraphNode> node;
  KernelWork* work = nullptr;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindWork(handle, &node, &work);
  if (result != CUDA_SUCCESS) return result;
  node->attributes[id] = *value;
  if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) work->cooperative = value->cooperative != 0;
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  std::shared_ptr<GraphNode> target, source;
  KernelWork *target_work = nullptr, *source_work = nullptr;
  CUresult result = FindWork(to, &target, &target_work);
  if (result == CUDA_SUCCESS) result = FindWork(from, &source, &source_work);
  if (result != CUDA_SUCCESS) return result;
  target->attributes = source->attributes;
  target_work->cooperative = source_work->cooperative;
  return CUDA_SUCCESS;
}

// --- copies and memsets

CUresult cuGraphAddMemcpyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                              size_t count, const CUDA_MEMCPY3D* params, CUcontext) {
  return AddParams({out, graph, dependencies, count}, params);
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D* params) {
  std::shared_ptr<GraphNode> node;
  MemcpyWork* work = nullptr;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindWork(handle, &node, &work);
  if (result == CUDA_SUCCESS) *params = work->params;
  return result;
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* params) {
  return SetParams(node, params);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMCPY3D* params, CUcontext) {
  return SetExecParams(exec, node, params);
}

CUresult cuGraphAddMemsetNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                              size_t count, const CUDA_MEMSET_NODE_PARAMS_v1* params, CUcontext) {
  return AddParams({out, graph, dependencies, count}, params);
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS_v1* params) {
  std::shared_ptr<GraphNode> node;
  MemsetWork* work = nullptr;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindWork(handle, &node, &work);
  if (result != CUDA_SUCCESS) return result;
  const Fill& fill = work->fill;
  *params = {fill.address, fill.pitch, fill.value, fill.element_bytes, fill.width, fill.height};
  return CUDA_SUCCESS;
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS_v1* params) {
  return SetParams(node, params);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS_v1* params, CUcontext) {
  return SetExecParams(exec, node, params);
}

}  // namespace softgpu::api
