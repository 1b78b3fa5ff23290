// Graph nodes of host functions, events, child graphs and memory operations.
#include <memory>
#include <utility>

#include "shim/driver/graph_lookup.h"
#include "shim/driver/local.h"

namespace local {
namespace {

using shim::graphs::ChildWork;
using shim::graphs::EventRecordWork;
using shim::graphs::EventWaitWork;
using shim::graphs::HostWork;
using shim::graphs::MemoryWork;

// An event, or a child graph, becomes work by one of the To functions.
template <class Handle>
CUresult Add(const NodePlace& place, Handle handle, CUresult (*to_work)(Handle, Work*)) {
  Work work;
  const CUresult result = to_work(handle, &work);
  return result == CUDA_SUCCESS ? AddWork(place, std::move(work)) : result;
}

template <class Handle>
CUresult Set(CUgraphNode node, Handle handle, CUresult (*to_work)(Handle, Work*)) {
  Work work;
  const CUresult result = to_work(handle, &work);
  return result == CUDA_SUCCESS ? SetWork(node, std::move(work)) : result;
}

template <class Handle>
CUresult SetInExec(CUgraphExec executable, CUgraphNode node, Handle handle,
                   CUresult (*to_work)(Handle, Work*)) {
  Work work;
  const CUresult result = to_work(handle, &work);
  return result == CUDA_SUCCESS ? SetExecWork(executable, node, std::move(work)) : result;
}

template <class EventWork>
CUresult EventOf(CUgraphNode program, CUevent* out) {
  std::shared_ptr<Node> node;
  EventWork* work = nullptr;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindWork(program, &node, &work);
  if (result == CUDA_SUCCESS) *out = work->event;
  return result;
}

}  // namespace

// --- host functions

CUresult cuGraphAddHostNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                            size_t count, const CUDA_HOST_NODE_PARAMS_v1* params) {
  return AddParams({out, graph, dependencies, count}, params);
}

CUresult cuGraphHostNodeGetParams(CUgraphNode program, CUDA_HOST_NODE_PARAMS_v1* params) {
  std::shared_ptr<Node> node;
  HostWork* work = nullptr;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindWork(program, &node, &work);
  if (result == CUDA_SUCCESS) *params = {work->function, work->data};
  return result;
}

CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS_v1* params) {
  return SetParams(node, params);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS_v1* params) {
  return SetExecParams(executable, node, params);
}

// --- events

CUresult cuGraphAddEventRecordNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                   size_t count, CUevent event) {
  return Add({out, graph, dependencies, count}, event, &ToRecord);
}

CUresult cuGraphAddEventWaitNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                 size_t count, CUevent event) {
  return Add({out, graph, dependencies, count}, event, &ToWait);
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  return EventOf<EventRecordWork>(node, event);
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  return EventOf<EventWaitWork>(node, event);
}

CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  return Set(node, event, &ToRecord);
}

CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  return Set(node, event, &ToWait);
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec executable, CUgraphNode node,
                                            CUevent event) {
  return SetInExec(executable, node, event, &ToRecord);
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec executable, CUgraphNode node, CUevent event) {
  return SetInExec(executable, node, event, &ToWait);
}

// --- child graphs

CUresult cuGraphAddChildGraphNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                  size_t count, CUgraph child) {
  return Add({out, graph, dependencies, count}, child, &ToChild);
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode program, CUgraph* graph) {
  std::shared_ptr<Node> node;
  ChildWork* work = nullptr;
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindWork(program, &node, &work);
  if (result == CUDA_SUCCESS) *graph = HandleOf(*work->graph);
  return result;
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                            CUgraph child) {
  return SetInExec(executable, node, child, &ToChild);
}

// --- memory operations

CUresult cuGraphAddBatchMemOpNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                  size_t count, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* params) {
  return AddParams({out, graph, dependencies, count}, params);
}

CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode program,
                                        CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* params) {
  std::shared_ptr<Node> node;
  MemoryWork* work = nullptr;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindWork(program, &node, &work);
  if (result != CUDA_SUCCESS) return result;
  *params = {nullptr, static_cast<unsigned>(work->items.size()), work->items.data(), 0};
  return CUDA_SUCCESS;
}

CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode node,
                                        const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* params) {
  return SetParams(node, params);
}

CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec executable, CUgraphNode node,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* params) {
  return SetExecParams(executable, node, params);
}

}  // namespace local
