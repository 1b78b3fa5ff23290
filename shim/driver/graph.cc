// Graphs and their shape: creation, nodes and edges, clones, user objects.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "shim/client.h"
#include "shim/driver/graph_lookup.h"
#include "shim/driver/local.h"

namespace local {
namespace {

CUresult Ready() { return shim::Client::Process().Ready(); }

std::shared_ptr<UserObject> FindUserObject(CUuserObject program) {
  return Objects::Process().user_objects.Find(program);
}

void EnterUserObject(const std::shared_ptr<UserObject>& object) {
  Objects::Process().user_objects.Add(object);
}

std::shared_ptr<Graph> EnteredCopy(const Graph& graph) { return graph.Clone(); }

bool IsCopyOf(const Node& node, CUgraphNode original) {
  return node.original == reinterpret_cast<uint64_t>(original);
}

CUresult Fail(CUresult code, const char*) { return code; }

}  // namespace

#include "ipc/calls/graph_shape.inc"

}  // namespace local
