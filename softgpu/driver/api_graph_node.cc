// Graph nodes: adding each type, reading and changing parameters, in a graph and in an executable graph.
#include <memory>
#include <utility>
#include <vector>

#include "softgpu/driver/api.h"
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

// Where a new node goes.
struct Place {
  CUgraphNode* out;
  CUgraph graph;
  const CUgraphNode* dependencies;
  size_t count;
};

CUresult AddWork(const Place& place, Work work) {
  std::shared_ptr<Graph> graph;
  std::vector<GraphNode*> dependencies;
  if (place.out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = FindGraph(place.graph, &graph);
  if (result == CUDA_SUCCESS) result = FindNodes(place.dependencies, place.count, &dependencies);
  if (result != CUDA_SUCCESS) return result;
  GraphNode* node = nullptr;
  result = graph->Add(std::move(work), dependencies, &node);
  if (result == CUDA_SUCCESS) *place.out = node->handle();
  return result;
}

template <class Params>
CUresult Add(const Place& place, const Params* params) {
  Work work = EmptyWork{};
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = ToWork(*params, &work);
  return result == CUDA_SUCCESS ? AddWork(place, std::move(work)) : result;
}

CUresult SetWork(CUgraphNode handle, Work work) {
  std::shared_ptr<GraphNode> node;
  const CUresult result = FindNode(handle, &node);
  if (result != CUDA_SUCCESS) return result;
  if (node->work.index() != work.index()) return Fail(CUDA_ERROR_INVALID_VALUE, "the node is of another type");
  node->param_pointers.clear();
  node->work = std::move(work);
  return CUDA_SUCCESS;
}

// The executable graph knows its nodes by identity: the node itself may be gone.
CUresult SetExecWork(CUgraphExec handle, CUgraphNode node, Work work) {
  std::shared_ptr<GraphExec> exec;
  const CUresult result = FindExec(handle, &exec);
  if (result != CUDA_SUCCESS) return result;
  return exec->SetWork(reinterpret_cast<const GraphNode*>(node), std::move(work));
}

template <class Params>
CUresult Set(CUgraphNode node, const Params* params) {
  Work work = EmptyWork{};
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = ToWork(*params, &work);
  return result == CUDA_SUCCESS ? SetWork(node, std::move(work)) : result;
}

template <class Params>
CUresult SetExec(CUgraphExec exec, CUgraphNode node, const Params* params) {
  Work work = EmptyWork{};
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = ToWork(*params, &work);
  return result == CUDA_SUCCESS ? SetExecWork(exec, node, std::move(work)) : result;
}

// Finds the node and its work of type T.
template <class T>
CUresult Find(CUgraphNode handle, std::shared_ptr<GraphNode>* node, T** work) {
  const CUresult result = FindNode(handle, node);
  if (result != CUDA_SUCCESS) return result;
  *work = WorkAs<T>(**node);
  return *work != nullptr ? CUDA_SUCCESS : Fail(CUDA_ERROR_INVALID_VALUE, "the node is of another type");
}

// Pointers into the node, valid until its parameters change, as the manual says.
CUDA_KERNEL_NODE_PARAMS_v2 ParamsOfKernel(GraphNode& node, KernelWork& work) {
  if (node.param_pointers.empty()) {
    for (const ParamInfo& param : work.function->kernel().params()) {
      node.param_pointers.push_back(work.parameters.data() + param.offset);
    }
  }
  return {work.function->handle(), work.grid.x, work.grid.y, work.grid.z, work.block.x, work.block.y,
          work.block.z, work.dynamic_shared_bytes,
          node.param_pointers.empty() ? nullptr : node.param_pointers.data(), nullptr, nullptr,
          work.context->handle()};
}

template <class EventWork>
CUresult EventOf(CUgraphNode handle, CUevent* out) {
  std::shared_ptr<GraphNode> node;
  EventWork* work = nullptr;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Find(handle, &node, &work);
  if (result == CUDA_SUCCESS) *out = work->event->handle();
  return result;
}

template <class EventWork>
CUresult MakeEventWork(CUevent handle, Work* work) {
  std::shared_ptr<Event> event;
  const CUresult result = FindEvent(handle, &event);
  if (result == CUDA_SUCCESS) *work = EventWork{event};
  return result;
}

CUresult MakeChildWork(CUgraph handle, Work* work) {
  std::shared_ptr<Graph> graph;
  const CUresult result = FindGraph(handle, &graph);
  if (result == CUDA_SUCCESS) *work = ChildWork{graph};
  return result;
}

}  // namespace

// --- any type

CUresult cuGraphAddNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData*, size_t count, CUgraphNodeParams* params) {
  return Add({out, graph, dependencies, count}, params);
}

CUresult cuGraphAddNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                        CUgraphNodeParams* params) {
  return Add({out, graph, dependencies, count}, params);
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* params) { return Set(node, params); }

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) {
  return SetExec(exec, node, params);
}

CUresult cuGraphAddEmptyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                             size_t count) {
  return AddWork({out, graph, dependencies, count}, EmptyWork{});
}

// --- kernels

CUresult cuGraphAddKernelNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return Add({out, graph, dependencies, count}, params);
}

CUresult cuGraphAddKernelNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                              size_t count, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS_v2 wide = Widen(*params);
  return Add({out, graph, dependencies, count}, &wide);
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v2* params) {
  std::shared_ptr<GraphNode> node;
  KernelWork* work = nullptr;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Find(handle, &node, &work);
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
  return Set(node, params);
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS_v2 wide = Widen(*params);
  return Set(node, &wide);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return SetExec(exec, node, params);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS_v2 wide = Widen(*params);
  return SetExec(exec, node, &wide);
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID id,
                                       CUkernelNodeAttrValue* value) {
  std::shared_ptr<GraphNode> node;
  KernelWork* work = nullptr;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Find(handle, &node, &work);
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
  const CUresult result = Find(handle, &node, &work);
  if (result != CUDA_SUCCESS) return result;
  node->attributes[id] = *value;
  if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) work->cooperative = value->cooperative != 0;
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  std::shared_ptr<GraphNode> target, source;
  KernelWork *target_work = nullptr, *source_work = nullptr;
  CUresult result = Find(to, &target, &target_work);
  if (result == CUDA_SUCCESS) result = Find(from, &source, &source_work);
  if (result != CUDA_SUCCESS) return result;
  target->attributes = source->attributes;
  target_work->cooperative = source_work->cooperative;
  return CUDA_SUCCESS;
}

// --- copies and memsets

CUresult cuGraphAddMemcpyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                              size_t count, const CUDA_MEMCPY3D* params, CUcontext) {
  return Add({out, graph, dependencies, count}, params);
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D* params) {
  std::shared_ptr<GraphNode> node;
  MemcpyWork* work = nullptr;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Find(handle, &node, &work);
  if (result == CUDA_SUCCESS) *params = work->params;
  return result;
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* params) {
  return Set(node, params);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* params,
                                        CUcontext) {
  return SetExec(exec, node, params);
}

CUresult cuGraphAddMemsetNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                              size_t count, const CUDA_MEMSET_NODE_PARAMS_v1* params, CUcontext) {
  return Add({out, graph, dependencies, count}, params);
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS_v1* params) {
  std::shared_ptr<GraphNode> node;
  MemsetWork* work = nullptr;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Find(handle, &node, &work);
  if (result != CUDA_SUCCESS) return result;
  const Fill& fill = work->fill;
  *params = {fill.address, fill.pitch, fill.value, fill.element_bytes, fill.width, fill.height};
  return CUDA_SUCCESS;
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS_v1* params) {
  return Set(node, params);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS_v1* params, CUcontext) {
  return SetExec(exec, node, params);
}

// --- host functions

CUresult cuGraphAddHostNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                            size_t count, const CUDA_HOST_NODE_PARAMS_v1* params) {
  if (params == nullptr || params->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return AddWork({out, graph, dependencies, count}, HostWork{params->fn, params->userData});
}

CUresult cuGraphHostNodeGetParams(CUgraphNode handle, CUDA_HOST_NODE_PARAMS_v1* params) {
  std::shared_ptr<GraphNode> node;
  HostWork* work = nullptr;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Find(handle, &node, &work);
  if (result == CUDA_SUCCESS) *params = {work->function, work->data};
  return result;
}

CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS_v1* params) {
  if (params == nullptr || params->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SetWork(node, HostWork{params->fn, params->userData});
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS_v1* params) {
  if (params == nullptr || params->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SetExecWork(exec, node, HostWork{params->fn, params->userData});
}

// --- events

CUresult cuGraphAddEventRecordNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                   size_t count, CUevent event) {
  Work work = EmptyWork{};
  const CUresult result = MakeEventWork<EventRecordWork>(event, &work);
  return result == CUDA_SUCCESS ? AddWork({out, graph, dependencies, count}, std::move(work)) : result;
}

CUresult cuGraphAddEventWaitNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                 size_t count, CUevent event) {
  Work work = EmptyWork{};
  const CUresult result = MakeEventWork<EventWaitWork>(event, &work);
  return result == CUDA_SUCCESS ? AddWork({out, graph, dependencies, count}, std::move(work)) : result;
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  return EventOf<EventRecordWork>(node, event);
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  return EventOf<EventWaitWork>(node, event);
}

CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  Work work = EmptyWork{};
  const CUresult result = MakeEventWork<EventRecordWork>(event, &work);
  return result == CUDA_SUCCESS ? SetWork(node, std::move(work)) : result;
}

CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  Work work = EmptyWork{};
  const CUresult result = MakeEventWork<EventWaitWork>(event, &work);
  return result == CUDA_SUCCESS ? SetWork(node, std::move(work)) : result;
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  Work work = EmptyWork{};
  const CUresult result = MakeEventWork<EventRecordWork>(event, &work);
  return result == CUDA_SUCCESS ? SetExecWork(exec, node, std::move(work)) : result;
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  Work work = EmptyWork{};
  const CUresult result = MakeEventWork<EventWaitWork>(event, &work);
  return result == CUDA_SUCCESS ? SetExecWork(exec, node, std::move(work)) : result;
}

// --- child graphs

CUresult cuGraphAddChildGraphNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                  size_t count, CUgraph child) {
  Work work = EmptyWork{};
  const CUresult result = MakeChildWork(child, &work);
  return result == CUDA_SUCCESS ? AddWork({out, graph, dependencies, count}, std::move(work)) : result;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph* graph) {
  std::shared_ptr<GraphNode> node;
  ChildWork* work = nullptr;
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Find(handle, &node, &work);
  if (result == CUDA_SUCCESS) *graph = work->graph->handle();
  return result;
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  Work work = EmptyWork{};
  const CUresult result = MakeChildWork(child, &work);
  return result == CUDA_SUCCESS ? SetExecWork(exec, node, std::move(work)) : result;
}

// --- memory operations

CUresult cuGraphAddBatchMemOpNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                  size_t count, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* params) {
  if (params == nullptr || params->paramArray == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return AddWork({out, graph, dependencies, count},
                 MemoryWork{{params->paramArray, params->paramArray + params->count}});
}

CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode handle, CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* params) {
  std::shared_ptr<GraphNode> node;
  MemoryWork* work = nullptr;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Find(handle, &node, &work);
  if (result != CUDA_SUCCESS) return result;
  *params = {nullptr, static_cast<unsigned>(work->items.size()), work->items.data(), 0};
  return CUDA_SUCCESS;
}

CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* params) {
  if (params == nullptr || params->paramArray == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SetWork(node, MemoryWork{{params->paramArray, params->paramArray + params->count}});
}

CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* params) {
  if (params == nullptr || params->paramArray == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SetExecWork(exec, node, MemoryWork{{params->paramArray, params->paramArray + params->count}});
}

}  // namespace softgpu::api
