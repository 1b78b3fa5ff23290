// The steps of an executable graph: a graph's nodes in an order that respects the edges, and the
// shape that an update of the executable graph must keep. Thread safety:
// functions of their arguments; a graph must not change meanwhile.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "graphs/graph.h"

namespace graphs {

// One step of an executable graph, as far as an update must keep it.
struct StepShape {
  std::vector<size_t> dependencies;  // numbers of earlier steps, ascending
  size_t type = 0;                   // of its work, as its user numbers them
  size_t kind = 0;                   // of a conditional node
  size_t bodies = 0;                 // likewise
};

// How two lists of steps differ, first.
enum class Difference { kNone, kTopology, kType };

// `at`: the step that differs, or behind both lists when they differ in length or not at all.
Difference Compare(const std::vector<StepShape>& before, const std::vector<StepShape>& after,
                   size_t* at);

template <class Use>
struct PlannedNode {
  const Node<Use>* node;
  std::vector<size_t> dependencies;  // as in StepShape
};

// Nothing when the graph has a cycle.
template <class Use>
std::optional<std::vector<PlannedNode<Use>>> PlanOf(const Graph<Use>& graph) {
  typename Graph<Use>::Members order;
  if (!graph.Order(&order)) return std::nullopt;
  std::vector<size_t> number(order.size());  // by position in the graph
  std::vector<PlannedNode<Use>> plan;
  for (const Node<Use>* const node : order) {
    PlannedNode<Use> planned{node, {}};
    for (const Node<Use>* const dependency : node->dependencies())
      planned.dependencies.push_back(number[dependency->position()]);
    std::sort(planned.dependencies.begin(), planned.dependencies.end());
    number[node->position()] = plan.size();
    plan.push_back(std::move(planned));
  }
  return plan;
}

}  // namespace graphs
