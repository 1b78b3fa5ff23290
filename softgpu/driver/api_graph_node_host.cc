// Graph nodes of host functions, events, child graphs and memory operations.
#include <memory>
#include <utility>

#include "softgpu/driver/api.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/event.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/graph_handles.h"
#include "softgpu/driver/graph_node_work.h"
#include "softgpu/driver/handles.h"

namespace softgpu::api {
namespace {

template <class EventWork>
CUresult EventOf(CUgraphNode handle, CUevent* out) {
  std::shared_ptr<GraphNode> node;
  EventWork* work = nullptr;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindWork(handle, &node, &work);
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
  const CUresult result = FindWork(handle, &node, &work);
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
  return result == CUDA_SUCCESS ? AddWork({out, graph, dependencies, count}, std::move(work))
                                : result;
}

CUresult cuGraphAddEventWaitNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                 size_t count, CUevent event) {
  Work work = EmptyWork{};
  const CUresult result = MakeEventWork<EventWaitWork>(event, &work);
  return result == CUDA_SUCCESS ? AddWork({out, graph, dependencies, count}, std::move(work))
                                : result;
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
  return result == CUDA_SUCCESS ? AddWork({out, graph, dependencies, count}, std::move(work))
                                : result;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph* graph) {
  std::shared_ptr<GraphNode> node;
  ChildWork* work = nullptr;
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindWork(handle, &node, &work);
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

CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode handle,
                                        CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* params) {
  std::shared_ptr<GraphNode> node;
  MemoryWork* work = nullptr;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindWork(handle, &node, &work);
  if (result != CUDA_SUCCESS) return result;
  *params = {nullptr, static_cast<unsigned>(work->items.size()), work->items.data(), 0};
  return CUDA_SUCCESS;
}

CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode node,
                                        const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* params) {
  if (params == nullptr || params->paramArray == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SetWork(node, MemoryWork{{params->paramArray, params->paramArray + params->count}});
}

CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* params) {
  if (params == nullptr || params->paramArray == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SetExecWork(exec, node,
                     MemoryWork{{params->paramArray, params->paramArray + params->count}});
}

}  // namespace softgpu::api
