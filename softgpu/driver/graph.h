// The software GPU's graphs: those of graphs/graph.h, with work as what their nodes do. A handle is
// the object's address. Thread safety: as of graphs; the driver's tables of handles are safe.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>

#include "graphs/conditional.h"
#include "graphs/graph.h"
#include "graphs/node_content.h"
#include "softgpu/driver/work.h"

namespace softgpu {

using NodeContent = graphs::NodeContent<Work, CUlaunchAttributeValue>;

struct GraphUse {
  using Content = NodeContent;
  static std::shared_ptr<Graph>* ChildIn(NodeContent* content);
  static std::shared_ptr<GraphConditional> ConditionalIn(const NodeContent& content);
  static bool MayBeInBody(const NodeContent& content);
  static uint64_t Enter(const std::shared_ptr<Graph>& graph);
  static uint64_t Enter(const std::shared_ptr<GraphNode>& node);
  static void Leave(const Graph& graph);
  static void Leave(const GraphNode& node);
};

using UserReferences = graphs::UserReferences;

inline CUgraph HandleOf(const Graph& graph) { return reinterpret_cast<CUgraph>(graph.name()); }
inline CUgraphNode HandleOf(const GraphNode& node) {
  return reinterpret_cast<CUgraphNode>(node.name());
}
// Logs why.
CUresult ResultOf(graphs::Refusal refusal);

}  // namespace softgpu
