// Nodes of graphs whose parameters differ from the driver's: kernels are named by host addresses,
// copies and fills lack a context. Everything else about graphs is forwarded (exports.inc).
#include <bit>

#include "runtime/api.h"
#include "runtime/array.h"
#include "runtime/context.h"
#include "runtime/copy.h"
#include "runtime/driver.h"
#include "runtime/function.h"
#include "runtime/registration.h"
#include "runtime/thread_state.h"

namespace runtime {
namespace {

static_assert(sizeof(cudaGraphNodeParams) == sizeof(CUgraphNodeParams));

CUcontext Context() { return Thread().context; }

// Both interfaces have two structs with these members.
template <class RuntimeParams, class DriverParams>
cudaError_t ToKernel(const RuntimeParams& params, DriverParams* kernel) {
  CUfunction function = nullptr;
  const cudaError_t error = FindFunction(params.func, &function);
  if (error != cudaSuccess) return error;
  *kernel = {};
  kernel->func = function;
  kernel->gridDimX = params.gridDim.x;
  kernel->gridDimY = params.gridDim.y;
  kernel->gridDimZ = params.gridDim.z;
  kernel->blockDimX = params.blockDim.x;
  kernel->blockDimY = params.blockDim.y;
  kernel->blockDimZ = params.blockDim.z;
  kernel->sharedMemBytes = params.sharedMemBytes;
  kernel->kernelParams = params.kernelParams;
  kernel->extra = params.extra;
  return cudaSuccess;
}

CUDA_MEMSET_NODE_PARAMS ToMemset(const cudaMemsetParams& params) {
  CUDA_MEMSET_NODE_PARAMS fill = {};
  fill.dst = reinterpret_cast<CUdeviceptr>(params.dst);
  fill.pitch = params.pitch;
  fill.value = params.value;
  fill.elementSize = params.elementSize;
  fill.width = params.width;
  fill.height = params.height;
  return fill;
}

// A linear copy as a box one row high.
cudaMemcpy3DParms Row(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  cudaMemcpy3DParms params = {};
  params.srcPtr = {const_cast<void*>(source), bytes, bytes, 1};
  params.dstPtr = {target, bytes, bytes, 1};
  params.extent = {bytes, 1, 1};
  params.kind = kind;
  return params;
}

// Some node types look the same in both interfaces; the others are rewritten here.
cudaError_t ToNode(const cudaGraphNodeParams& params, CUgraphNodeParams* node) {
  *node = {};
  node->type = static_cast<CUgraphNodeType>(params.type);
  switch (params.type) {
    case cudaGraphNodeTypeKernel:
      return ToKernel(params.kernel, &node->kernel);
    case cudaGraphNodeTypeMemcpy:
      node->memcpy.flags = params.memcpy.flags;
      node->memcpy.copyCtx = Context();
      return ToDriver(params.memcpy.copyParams, &node->memcpy.copyParams);
    case cudaGraphNodeTypeMemset: {
      const cudaMemsetParamsV2& fill = params.memset;
      node->memset = {reinterpret_cast<CUdeviceptr>(fill.dst),
                      fill.pitch,
                      fill.value,
                      fill.elementSize,
                      fill.width,
                      fill.height,
                      Context()};
      return cudaSuccess;
    }
    case cudaGraphNodeTypeConditional:
      node->conditional.handle = params.conditional.handle;
      node->conditional.type = static_cast<CUgraphConditionalNodeType>(params.conditional.type);
      node->conditional.size = params.conditional.size;
      node->conditional.ctx = Context();
      return cudaSuccess;
    default:
      *node = std::bit_cast<CUgraphNodeParams>(params);
      return cudaSuccess;
  }
}

// What the driver hands back through the parameters of a node that was added.
void FromNode(const CUgraphNodeParams& node, cudaGraphNodeParams* params) {
  if (params->type == cudaGraphNodeTypeMemAlloc) {
    params->alloc.dptr = reinterpret_cast<void*>(node.alloc.dptr);
  } else if (params->type == cudaGraphNodeTypeConditional) {
    params->conditional.phGraph_out = node.conditional.phGraph_out;
  }
}

}  // namespace

namespace api {

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const cudaKernelNodeParams* params) {
  if (params == nullptr) return cudaErrorInvalidValue;
  CUDA_KERNEL_NODE_PARAMS kernel;
  const cudaError_t error = ToKernel(*params, &kernel);
  if (error != cudaSuccess) return error;
  return Driver().cuGraphAddKernelNode_v2(node, graph, dependencies, count, &kernel);
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* params) {
  if (params == nullptr) return cudaErrorInvalidValue;
  CUDA_KERNEL_NODE_PARAMS kernel;
  const cudaError_t error = ToKernel(*params, &kernel);
  return error == cudaSuccess ? Driver().cuGraphKernelNodeSetParams_v2(node, &kernel) : error;
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params) {
  if (params == nullptr) return cudaErrorInvalidValue;
  CUDA_KERNEL_NODE_PARAMS kernel;
  const cudaError_t error = ToKernel(*params, &kernel);
  if (error != cudaSuccess) return error;
  return Driver().cuGraphExecKernelNodeSetParams_v2(exec, node, &kernel);
}

// The driver knows the kernel's function; the program named it by a host address.
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* params) {
  if (params == nullptr) return cudaErrorInvalidValue;
  CUDA_KERNEL_NODE_PARAMS kernel = {};
  const cudaError_t error = Driver().cuGraphKernelNodeGetParams_v2(node, &kernel);
  if (error != cudaSuccess) return error;
  const void* const host = FindHost(kernel.func);
  params->func = host != nullptr ? const_cast<void*>(host) : kernel.kern;
  params->gridDim = {kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ};
  params->blockDim = {kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ};
  params->sharedMemBytes = kernel.sharedMemBytes;
  params->kernelParams = kernel.kernelParams;
  params->extra = kernel.extra;
  return cudaSuccess;
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const cudaMemcpy3DParms* params) {
  if (params == nullptr) return cudaErrorInvalidValue;
  CUDA_MEMCPY3D copy;
  const cudaError_t error = ToDriver(*params, &copy);
  if (error != cudaSuccess) return error;
  return Driver().cuGraphAddMemcpyNode(node, graph, dependencies, count, &copy, Context());
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* params) {
  if (params == nullptr) return cudaErrorInvalidValue;
  CUDA_MEMCPY3D copy;
  const cudaError_t error = Driver().cuGraphMemcpyNodeGetParams(node, &copy);
  return error == cudaSuccess ? FromDriver(copy, params) : error;
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* params) {
  if (params == nullptr) return cudaErrorInvalidValue;
  CUDA_MEMCPY3D copy;
  const cudaError_t error = ToDriver(*params, &copy);
  return error == cudaSuccess ? Driver().cuGraphMemcpyNodeSetParams(node, &copy) : error;
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* params) {
  if (params == nullptr) return cudaErrorInvalidValue;
  CUDA_MEMCPY3D copy;
  const cudaError_t error = ToDriver(*params, &copy);
  if (error != cudaSuccess) return error;
  return Driver().cuGraphExecMemcpyNodeSetParams(exec, node, &copy, Context());
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* dependencies, size_t count,
                                     void* target, const void* source, size_t bytes,
                                     cudaMemcpyKind kind) {
  const cudaMemcpy3DParms params = Row(target, source, bytes, kind);
  return api::cudaGraphAddMemcpyNode(node, graph, dependencies, count, &params);
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* target, const void* source,
                                           size_t bytes, cudaMemcpyKind kind) {
  const cudaMemcpy3DParms params = Row(target, source, bytes, kind);
  return api::cudaGraphMemcpyNodeSetParams(node, &params);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node,
                                               void* target, const void* source, size_t bytes,
                                               cudaMemcpyKind kind) {
  const cudaMemcpy3DParms params = Row(target, source, bytes, kind);
  return api::cudaGraphExecMemcpyNodeSetParams(exec, node, &params);
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const cudaMemsetParams* params) {
  if (params == nullptr) return cudaErrorInvalidValue;
  const CUDA_MEMSET_NODE_PARAMS fill = ToMemset(*params);
  return Driver().cuGraphAddMemsetNode(node, graph, dependencies, count, &fill, Context());
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemsetParams* params) {
  if (params == nullptr) return cudaErrorInvalidValue;
  const CUDA_MEMSET_NODE_PARAMS fill = ToMemset(*params);
  return Driver().cuGraphExecMemsetNodeSetParams(exec, node, &fill, Context());
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph,
                             const cudaGraphNode_t* dependencies, const cudaGraphEdgeData* edges,
                             size_t count, cudaGraphNodeParams* params) {
  if (params == nullptr) return cudaErrorInvalidValue;
  CUgraphNodeParams driver_params;
  cudaError_t error = ToNode(*params, &driver_params);
  if (error != cudaSuccess) return error;
  error = Driver().cuGraphAddNode_v2(node, graph, dependencies,
                                     reinterpret_cast<const CUgraphEdgeData*>(edges), count,
                                     &driver_params);
  if (error == cudaSuccess) FromNode(driver_params, params);
  return error;
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* params) {
  if (params == nullptr) return cudaErrorInvalidValue;
  CUgraphNodeParams driver_params;
  const cudaError_t error = ToNode(*params, &driver_params);
  return error == cudaSuccess ? Driver().cuGraphNodeSetParams(node, &driver_params) : error;
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                       cudaGraphNodeParams* params) {
  if (params == nullptr) return cudaErrorInvalidValue;
  CUgraphNodeParams driver_params;
  const cudaError_t error = ToNode(*params, &driver_params);
  return error == cudaSuccess ? Driver().cuGraphExecNodeSetParams(exec, node, &driver_params)
                              : error;
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph,
                                             unsigned value, unsigned flags) {
  static_assert(sizeof(CUgraphConditionalHandle) == sizeof(*handle));
  return Driver().cuGraphConditionalHandleCreate(
      reinterpret_cast<CUgraphConditionalHandle*>(handle), graph, Context(), value, flags);
}

}  // namespace api
}  // namespace runtime
