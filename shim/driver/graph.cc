// Graphs and their shape: creation, nodes and edges, clones, user objects.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "shim/driver/graph_lookup.h"
#include "shim/driver/local.h"

namespace local {
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

CUgraphNode HandleOfPointer(const Node* node) { return HandleOf(*node); }

CUresult ForEachEdge(CUgraph program, const CUgraphNode* from, const CUgraphNode* to, size_t count,
                     CUresult (Graph::*change)(Node*, Node*)) {
  std::shared_ptr<Graph> graph;
  std::vector<Node*> sources, targets;
  CUresult result = FindGraph(program, &graph);
  if (result == CUDA_SUCCESS) result = FindNodes(from, count, &sources);
  if (result == CUDA_SUCCESS) result = FindNodes(to, count, &targets);
  for (size_t i = 0; i < count && result == CUDA_SUCCESS; ++i) {
    result = (graph.get()->*change)(sources[i], targets[i]);
  }
  return result;
}

}  // namespace

CUresult cuGraphCreate(CUgraph* out, unsigned flags) {
  if (const CUresult result = shim::Client::Process().Ready(); result != CUDA_SUCCESS)
    return result;
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *out = HandleOf(*Graph::Create());
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph program) {
  std::shared_ptr<Graph> graph;
  const CUresult result = FindGraph(program, &graph);
  if (result == CUDA_SUCCESS) graph->Destroy();
  return result;
}

CUresult cuGraphClone(CUgraph* out, CUgraph original) {
  std::shared_ptr<Graph> graph;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindGraph(original, &graph);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Graph> copy = graph->Clone();
  *out = HandleOf(*copy);
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(CUgraphNode* out, CUgraphNode original, CUgraph clone) {
  std::shared_ptr<Graph> graph;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindGraph(clone, &graph);
  if (result != CUDA_SUCCESS) return result;
  for (const std::shared_ptr<Node>& node : graph->nodes()) {
    if (node->original != reinterpret_cast<uint64_t>(original)) continue;
    *out = HandleOf(*node);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphDestroyNode(CUgraphNode program) {
  std::shared_ptr<Node> node;
  const CUresult result = FindNode(program, &node);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Graph> graph = node->graph.lock();
  if (graph != nullptr) graph->Remove(node.get());
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode program, CUgraphNodeType* type) {
  std::shared_ptr<Node> node;
  if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindNode(program, &node);
  if (result == CUDA_SUCCESS) *type = TypeOf(node->work);
  return result;
}

CUresult cuGraphGetNodes(CUgraph program, CUgraphNode* nodes, size_t* count) {
  std::shared_ptr<Graph> graph;
  const CUresult result = FindGraph(program, &graph);
  if (result != CUDA_SUCCESS) return result;
  return Answer(graph->nodes(), nodes, count,
                [](const std::shared_ptr<Node>& node) { return HandleOf(*node); });
}

CUresult cuGraphGetRootNodes(CUgraph program, CUgraphNode* nodes, size_t* count) {
  std::shared_ptr<Graph> graph;
  const CUresult result = FindGraph(program, &graph);
  if (result != CUDA_SUCCESS) return result;
  std::vector<Node*> roots;
  for (const std::shared_ptr<Node>& node : graph->nodes()) {
    if (node->dependencies.empty()) roots.push_back(node.get());
  }
  return Answer(roots, nodes, count, &HandleOfPointer);
}

// --- edges; edge data beyond the default would mean programmatic launches, which the device has
// not

CUresult cuGraphGetEdges_v2(CUgraph program, CUgraphNode* from, CUgraphNode* to,
                            CUgraphEdgeData* data, size_t* count) {
  std::shared_ptr<Graph> graph;
  if (count == nullptr || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindGraph(program, &graph);
  if (result != CUDA_SUCCESS) return result;
  const std::vector<std::pair<Node*, Node*>> edges = graph->Edges();
  size_t sources = *count;
  Answer(edges, from, &sources, [](const auto& edge) { return HandleOf(*edge.first); });
  if (data != nullptr) std::fill(data, data + sources, CUgraphEdgeData{});
  return Answer(edges, to, count, [](const auto& edge) { return HandleOf(*edge.second); });
}

CUresult cuGraphGetEdges(CUgraph program, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return local::cuGraphGetEdges_v2(program, from, to, nullptr, count);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode program, CUgraphNode* nodes,
                                       CUgraphEdgeData* data, size_t* count) {
  std::shared_ptr<Node> node;
  CUresult result = FindNode(program, &node);
  if (result != CUDA_SUCCESS) return result;
  result = Answer(node->dependencies, nodes, count, &HandleOfPointer);
  if (result == CUDA_SUCCESS && data != nullptr) std::fill(data, data + *count, CUgraphEdgeData{});
  return result;
}

CUresult cuGraphNodeGetDependencies(CUgraphNode program, CUgraphNode* nodes, size_t* count) {
  return local::cuGraphNodeGetDependencies_v2(program, nodes, nullptr, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode program, CUgraphNode* nodes,
                                         CUgraphEdgeData* data, size_t* count) {
  std::shared_ptr<Node> node;
  CUresult result = FindNode(program, &node);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Graph> graph = node->graph.lock();
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  result = Answer(graph->DependentsOf(node.get()), nodes, count, &HandleOfPointer);
  if (result == CUDA_SUCCESS && data != nullptr) std::fill(data, data + *count, CUgraphEdgeData{});
  return result;
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode program, CUgraphNode* nodes, size_t* count) {
  return local::cuGraphNodeGetDependentNodes_v2(program, nodes, nullptr, count);
}

CUresult cuGraphAddDependencies_v2(CUgraph program, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData*, size_t count) {
  return ForEachEdge(program, from, to, count, &Graph::AddEdge);
}

CUresult cuGraphAddDependencies(CUgraph program, const CUgraphNode* from, const CUgraphNode* to,
                                size_t count) {
  return ForEachEdge(program, from, to, count, &Graph::AddEdge);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph program, const CUgraphNode* from,
                                      const CUgraphNode* to, const CUgraphEdgeData*, size_t count) {
  return ForEachEdge(program, from, to, count, &Graph::RemoveEdge);
}

CUresult cuGraphRemoveDependencies(CUgraph program, const CUgraphNode* from, const CUgraphNode* to,
                                   size_t count) {
  return ForEachEdge(program, from, to, count, &Graph::RemoveEdge);
}

CUresult cuGraphDebugDotPrint(CUgraph program, const char* path, unsigned) {
  std::shared_ptr<Graph> graph;
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindGraph(program, &graph);
  if (result != CUDA_SUCCESS) return result;
  FILE* const file = std::fopen(path, "w");
  if (file == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  std::fprintf(file, "digraph graph_1 {\n");
  for (const std::shared_ptr<Node>& node : graph->nodes()) {
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

CUresult cuUserObjectCreate(CUuserObject* out, void* pointer, CUhostFn destroy, unsigned count,
                            unsigned flags) {
  if (out == nullptr || destroy == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) return CUDA_ERROR_INVALID_VALUE;
  const std::shared_ptr<UserObject> object = std::make_shared<UserObject>(pointer, destroy, count);
  Objects::Process().user_objects.Add(object);
  *out = reinterpret_cast<CUuserObject>(object->value);
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject program, unsigned count) {
  const std::shared_ptr<UserObject> object = Objects::Process().user_objects.Find(program);
  if (object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  object->Retain(count);
  return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject program, unsigned count) {
  const std::shared_ptr<UserObject> object = Objects::Process().user_objects.Find(program);
  if (object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  object->Release(count);
  return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph program, CUuserObject object_handle, unsigned count,
                                 unsigned flags) {
  std::shared_ptr<Graph> graph;
  const CUresult result = FindGraph(program, &graph);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<UserObject> object = Objects::Process().user_objects.Find(object_handle);
  if (object == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_GRAPH_USER_OBJECT_MOVE) object->Retain(count);
  graph->user_objects[object] += count;
  return CUDA_SUCCESS;
}

CUresult cuGraphReleaseUserObject(CUgraph program, CUuserObject object_handle, unsigned count) {
  std::shared_ptr<Graph> graph;
  const CUresult result = FindGraph(program, &graph);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<UserObject> object = Objects::Process().user_objects.Find(object_handle);
  const auto held = graph->user_objects.find(object);
  if (held == graph->user_objects.end() || held->second < count) return CUDA_ERROR_INVALID_VALUE;
  held->second -= count;
  if (held->second == 0) graph->user_objects.erase(held);
  object->Release(count);
  return CUDA_SUCCESS;
}

}  // namespace local
