// Graphs and their shape: creation, nodes and edges, clones, user objects.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "softgpu/driver/api.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/graph_handles.h"

namespace softgpu::api {
namespace {

// Answers a list the way all of these calls do: without an array only the count, with one as much
// as fits, nulls behind.
template <class Item, class Convert>
CUresult Answer(const std::vector<Item>& items, CUgraphNode* out, size_t* count,
                const Convert& convert) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (out != nullptr) {
    for (size_t i = 0; i < *count; ++i) out[i] = i < items.size() ? convert(items[i]) : nullptr;
    *count = std::min(*count, items.size());
  } else {
    *count = items.size();
  }
  return CUDA_SUCCESS;
}

CUgraphNode HandleOf(GraphNode* node) { return node->handle(); }

CUresult ForEachEdge(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, size_t count,
                     CUresult (Graph::*change)(GraphNode*, GraphNode*)) {
  std::shared_ptr<Graph> graph;
  std::vector<GraphNode*> sources, targets;
  CUresult result = FindGraph(handle, &graph);
  if (result == CUDA_SUCCESS) result = FindNodes(from, count, &sources);
  if (result == CUDA_SUCCESS) result = FindNodes(to, count, &targets);
  for (size_t i = 0; i < count && result == CUDA_SUCCESS; ++i) {
    result = (graph.get()->*change)(sources[i], targets[i]);
  }
  return result;
}

}  // namespace

CUresult cuGraphCreate(CUgraph* out, unsigned int flags) {
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *out = Graph::Create()->handle();
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph handle) {
  std::shared_ptr<Graph> graph;
  const CUresult result = FindGraph(handle, &graph);
  if (result == CUDA_SUCCESS) graph->Destroy();
  return result;
}

CUresult cuGraphClone(CUgraph* out, CUgraph original) {
  std::shared_ptr<Graph> graph;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindGraph(original, &graph);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Graph> copy = graph->Clone();
  Driver::Get().graphs.Add(copy);
  for (const std::shared_ptr<GraphNode>& node : copy->nodes()) Driver::Get().graph_nodes.Add(node);
  *out = copy->handle();
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(CUgraphNode* out, CUgraphNode original, CUgraph clone) {
  std::shared_ptr<Graph> graph;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindGraph(clone, &graph);
  if (result != CUDA_SUCCESS) return result;
  for (const std::shared_ptr<GraphNode>& node : graph->nodes()) {
    if (static_cast<const void*>(node->original) != original) continue;
    *out = node->handle();
    return CUDA_SUCCESS;
  }
  return Fail(CUDA_ERROR_INVALID_VALUE, "the node has no copy in this graph");
}

CUresult cuGraphDestroyNode(CUgraphNode handle) {
  std::shared_ptr<GraphNode> node;
  const CUresult result = FindNode(handle, &node);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Graph> graph = node->graph.lock();
  if (graph != nullptr) graph->Remove(node.get());
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
  std::shared_ptr<GraphNode> node;
  if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindNode(handle, &node);
  if (result == CUDA_SUCCESS) *type = TypeOf(node->work);
  return result;
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  std::shared_ptr<Graph> graph;
  const CUresult result = FindGraph(handle, &graph);
  if (result != CUDA_SUCCESS) return result;
  return Answer(graph->nodes(), nodes, count,
                [](const std::shared_ptr<GraphNode>& node) { return node->handle(); });
}

CUresult cuGraphGetRootNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  std::shared_ptr<Graph> graph;
  const CUresult result = FindGraph(handle, &graph);
  if (result != CUDA_SUCCESS) return result;
  std::vector<GraphNode*> roots;
  for (const std::shared_ptr<GraphNode>& node : graph->nodes()) {
    if (node->dependencies.empty()) roots.push_back(node.get());
  }
  return Answer(roots, nodes, count, &HandleOf);
}

// --- edges; edge data beyond the default would mean programmatic launches, which the device has
// not

CUresult cuGraphGetEdges_v2(CUgraph handle, CUgraphNode* from, CUgraphNode* to,
                            CUgraphEdgeData* data, size_t* count) {
  std::shared_ptr<Graph> graph;
  if (count == nullptr || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindGraph(handle, &graph);
  if (result != CUDA_SUCCESS) return result;
  const std::vector<std::pair<GraphNode*, GraphNode*>> edges = graph->Edges();
  size_t sources = *count;
  Answer(edges, from, &sources, [](const auto& edge) { return edge.first->handle(); });
  if (data != nullptr) std::fill(data, data + sources, CUgraphEdgeData{});
  return Answer(edges, to, count, [](const auto& edge) { return edge.second->handle(); });
}

CUresult cuGraphGetEdges(CUgraph handle, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return api::cuGraphGetEdges_v2(handle, from, to, nullptr, count);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode handle, CUgraphNode* nodes,
                                       CUgraphEdgeData* data, size_t* count) {
  std::shared_ptr<GraphNode> node;
  CUresult result = FindNode(handle, &node);
  if (result != CUDA_SUCCESS) return result;
  result = Answer(node->dependencies, nodes, count, &HandleOf);
  if (result == CUDA_SUCCESS && data != nullptr) std::fill(data, data + *count, CUgraphEdgeData{});
  return result;
}

CUresult cuGraphNodeGetDependencies(CUgraphNode handle, CUgraphNode* nodes, size_t* count) {
  return api::cuGraphNodeGetDependencies_v2(handle, nodes, nullptr, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode handle, CUgraphNode* nodes,
                                         CUgraphEdgeData* data, size_t* count) {
  std::shared_ptr<GraphNode> node;
  CUresult result = FindNode(handle, &node);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Graph> graph = node->graph.lock();
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  result = Answer(graph->DependentsOf(node.get()), nodes, count, &HandleOf);
  if (result == CUDA_SUCCESS && data != nullptr) std::fill(data, data + *count, CUgraphEdgeData{});
  return result;
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode handle, CUgraphNode* nodes, size_t* count) {
  return api::cuGraphNodeGetDependentNodes_v2(handle, nodes, nullptr, count);
}

CUresult cuGraphAddDependencies_v2(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData*, size_t count) {
  return ForEachEdge(handle, from, to, count, &Graph::AddEdge);
}

CUresult cuGraphAddDependencies(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                                size_t count) {
  return ForEachEdge(handle, from, to, count, &Graph::AddEdge);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph handle, const CUgraphNode* from,
                                      const CUgraphNode* to, const CUgraphEdgeData*, size_t count) {
  return ForEachEdge(handle, from, to, count, &Graph::RemoveEdge);
}

CUresult cuGraphRemoveDependencies(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                                   size_t count) {
  return ForEachEdge(handle, from, to, count, &Graph::RemoveEdge);
}

CUresult cuGraphDebugDotPrint(CUgraph handle, const char* path, unsigned int) {
  std::shared_ptr<Graph> graph;
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindGraph(handle, &graph);
  if (result != CUDA_SUCCESS) return result;
  FILE* const file = std::fopen(path, "w");
  if (file == nullptr) return Fail(CUDA_ERROR_OPERATING_SYSTEM, "the file can't be written");
  std::fprintf(file, "digraph graph_1 {\n");
  for (const std::shared_ptr<GraphNode>& node : graph->nodes()) {
    std::fprintf(file, "  \"%p\" [label=\"type %d\"]\n", static_cast<void*>(node.get()),
                 static_cast<int>(TypeOf(node->work)));
  }
  for (const auto& [from, to] : graph->Edges()) {
    std::fprintf(file, "  \"%p\" -> \"%p\"\n", static_cast<void*>(from), static_cast<void*>(to));
  }
  std::fprintf(file, "}\n");
  return std::fclose(file) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

// --- user objects

CUresult cuUserObjectCreate(CUuserObject* out, void* pointer, CUhostFn destroy, unsigned int count,
                            unsigned int flags) {
  if (out == nullptr || destroy == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) return CUDA_ERROR_INVALID_VALUE;
  const std::shared_ptr<UserObject> object = std::make_shared<UserObject>(pointer, destroy, count);
  Driver::Get().user_objects.Add(object);
  *out = object->handle();
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject handle, unsigned int count) {
  const std::shared_ptr<UserObject> object = Driver::Get().user_objects.Find(handle);
  if (object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  object->Retain(count);
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject handle, unsigned int count) {
  const std::shared_ptr<UserObject> object = Driver::Get().user_objects.Find(handle);
  if (object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  object->Release(count);
  return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph handle, CUuserObject object_handle, unsigned int count,
                                 unsigned int flags) {
  std::shared_ptr<Graph> graph;
  const CUresult result = FindGraph(handle, &graph);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<UserObject> object = Driver::Get().user_objects.Find(object_handle);
  if (object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_GRAPH_USER_OBJECT_MOVE) object->Retain(count);
  graph->user_objects[object] += count;
  return CUDA_SUCCESS;
}

CUresult cuGraphReleaseUserObject(CUgraph handle, CUuserObject object_handle, unsigned int count) {
  std::shared_ptr<Graph> graph;
  const CUresult result = FindGraph(handle, &graph);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<UserObject> object = Driver::Get().user_objects.Find(object_handle);
  const auto held = graph->user_objects.find(object);
  if (held == graph->user_objects.end() || held->second < count) return CUDA_ERROR_INVALID_VALUE;
  held->second -= count;
  if (held->second == 0) graph->user_objects.erase(held);
  object->Release(count);
  return CUDA_SUCCESS;
}

}  // namespace softgpu::api
