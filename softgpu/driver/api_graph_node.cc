// Nodes: what they do, in a graph and in an executable graph.
#include <memory>
#include <utility>
#include <vector>

#include "graphs/conditional.h"
#include "softgpu/driver/api.h"
#include "softgpu/driver/conditions.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/event.h"
#include "softgpu/driver/function.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/graph_exec.h"
#include "softgpu/driver/graph_handles.h"
#include "softgpu/driver/handles.h"

namespace softgpu::api {
namespace {

// Pointers into the node, valid until its parameters change, as the manual says.
CUresult ParamsOfKernel(Node& node, KernelWork& work, CUDA_KERNEL_NODE_PARAMS_v2* params) {
  std::vector<void*>& pointers = node.content.param_pointers;
  pointers.clear();
  for (const ParamInfo& param : work.function->kernel().params())
    pointers.push_back(work.parameters.data() + param.offset);
  *params = {work.function->handle(),
             work.grid.x,
             work.grid.y,
             work.grid.z,
             work.block.x,
             work.block.y,
             work.block.z,
             work.dynamic_shared_bytes,
             pointers.empty() ? nullptr : pointers.data(),
             nullptr,
             nullptr,
             work.context->handle()};
  return CUDA_SUCCESS;
}

CUDA_MEMSET_NODE_PARAMS_v1 ParamsOf(const MemsetWork& work) {
  const Fill& fill = work.fill;
  return {fill.address, fill.pitch, fill.value, fill.element_bytes, fill.width, fill.height};
}

using softgpu::HandleOf;  // of graphs, beside the one below
CUevent HandleOf(const std::shared_ptr<Event>& event) { return event->handle(); }

}  // namespace

#include "ipc/calls/graph_nodes.inc"

namespace {

CUresult NumberOfContext(CUcontext handle, uint64_t* number) {
  std::shared_ptr<Context> context;
  const CUresult result = FindContext(handle, &context);
  if (result == CUDA_SUCCESS) *number = context->id();
  return result;
}

}  // namespace

#include "ipc/calls/graph_conditionals.inc"

namespace {

CUresult AddNode(const NodePlace& place, CUgraphNodeParams* params) {
  if (params != nullptr && params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
    return AddConditional(place, &params->conditional);
  return AddNodeOrMemory(place, params, &api::cuGraphAddMemAllocNode, &api::cuGraphAddMemFreeNode);
}

}  // namespace
}  // namespace softgpu::api
