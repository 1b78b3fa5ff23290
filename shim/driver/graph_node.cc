// Nodes of any type, kernels, copies and memsets, in a graph and in an executable graph.
#include <memory>
#include <utility>
#include <vector>

#include "shim/driver/graph_lookup.h"
#include "shim/driver/local.h"

namespace local {
namespace {

using shim::graphs::EmptyWork;
using shim::graphs::KernelWork;
using shim::graphs::MemcpyWork;
using shim::graphs::MemsetWork;

// Pointers into the node, valid until its parameters change, as the manual says.
CUresult ParamsOfKernel(Node& node, KernelWork& work, CUDA_KERNEL_NODE_PARAMS_v2* params) {
  const shim::Function* const function = shim::State::Process().functions.Find(work.function);
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (node.param_pointers.empty()) {
    for (const ipc::ParamLayout& param : function->params)
      node.param_pointers.push_back(work.params.data() + param.offset);
  }
  *params = {reinterpret_cast<CUfunction>(work.function),
             work.grid[0],
             work.grid[1],
             work.grid[2],
             work.block[0],
             work.block[1],
             work.block[2],
             work.shared_bytes,
             node.param_pointers.empty() ? nullptr : node.param_pointers.data(),
             nullptr,
             nullptr,
             work.context};
  return CUDA_SUCCESS;
}

}  // namespace

// --- any type

CUresult cuGraphAddNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData*, size_t count, CUgraphNodeParams* params) {
  return AddParams({out, graph, dependencies, count}, params);
}

CUresult cuGraphAddNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                        size_t count, CUgraphNodeParams* params) {
  return AddParams({out, graph, dependencies, count}, params);
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* params) {
  return SetParams(node, params);
}

CUresult cuGraphExecNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                  CUgraphNodeParams* params) {
  return SetExecParams(executable, node, params);
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
  return AddParams({out, graph, dependencies, count}, params);
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode program, CUDA_KERNEL_NODE_PARAMS_v2* params) {
  std::shared_ptr<Node> node;
  KernelWork* work = nullptr;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindWork(program, &node, &work);
  return result == CUDA_SUCCESS ? ParamsOfKernel(*node, *work, params) : result;
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode program, CUDA_KERNEL_NODE_PARAMS_v1* params) {
  CUDA_KERNEL_NODE_PARAMS_v2 wide = {};
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = local::cuGraphKernelNodeGetParams_v2(program, &wide);
  if (result != CUDA_SUCCESS) return result;
  *params = {wide.func,      wide.gridDimX,  wide.gridDimY,       wide.gridDimZ,     wide.blockDimX,
             wide.blockDimY, wide.blockDimZ, wide.sharedMemBytes, wide.kernelParams, wide.extra};
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return SetParams(node, params);
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return SetParams(node, params);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec executable, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return SetExecParams(executable, node, params);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return SetExecParams(executable, node, params);
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode program, CUkernelNodeAttrID id,
                                       CUkernelNodeAttrValue* value) {
  std::shared_ptr<Node> node;
  KernelWork* work = nullptr;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindWork(program, &node, &work);
  if (result != CUDA_SUCCESS) return result;
  *value = node->attributes[id];
  if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) value->cooperative = work->cooperative ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode program, CUkernelNodeAttrID id,
                                       const CUkernelNodeAttrValue* value) {
  std::shared_ptr<Node> node;
  KernelWork* work = nullptr;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindWork(program, &node, &work);
  if (result != CUDA_SUCCESS) return result;
  node->attributes[id] = *value;
  if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) work->cooperative = value->cooperative != 0;
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  std::shared_ptr<Node> target, source;
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

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode program, CUDA_MEMCPY3D* params) {
  std::shared_ptr<Node> node;
  MemcpyWork* work = nullptr;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindWork(program, &node, &work);
  if (result == CUDA_SUCCESS) *params = work->params;
  return result;
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* params) {
  return SetParams(node, params);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                        const CUDA_MEMCPY3D* params, CUcontext) {
  return SetExecParams(executable, node, params);
}

CUresult cuGraphAddMemsetNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                              size_t count, const CUDA_MEMSET_NODE_PARAMS_v1* params, CUcontext) {
  return AddParams({out, graph, dependencies, count}, params);
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode program, CUDA_MEMSET_NODE_PARAMS_v1* params) {
  std::shared_ptr<Node> node;
  MemsetWork* work = nullptr;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindWork(program, &node, &work);
  if (result != CUDA_SUCCESS) return result;
  *params = work->params;
  return CUDA_SUCCESS;
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS_v1* params) {
  return SetParams(node, params);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS_v1* params, CUcontext) {
  return SetExecParams(executable, node, params);
}

}  // namespace local
