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

using Node = GraphNode;

CUresult Ready() { return CUDA_SUCCESS; }

std::shared_ptr<UserObject> FindUserObject(CUuserObject handle) {
  return Driver::Get().user_objects.Find(handle);
}

void EnterUserObject(const std::shared_ptr<UserObject>& object) {
  Driver::Get().user_objects.Add(object);
}

CUgraph HandleOf(const Graph& graph) { return graph.handle(); }
CUgraphNode HandleOf(const Node& node) { return node.handle(); }
CUuserObject HandleOf(const UserObject& object) { return object.handle(); }

std::shared_ptr<Graph> EnteredCopy(const Graph& graph) {
  const std::shared_ptr<Graph> copy = graph.Clone();
  Driver::Get().graphs.Add(copy);
  for (const std::shared_ptr<Node>& node : copy->nodes()) Driver::Get().graph_nodes.Add(node);
  return copy;
}

bool IsCopyOf(const Node& node, CUgraphNode original) {
  return static_cast<const void*>(node.original) == original;
}

}  // namespace

#include "ipc/calls/graph_shape.inc"

}  // namespace softgpu::api
