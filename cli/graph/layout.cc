#include "cli/graph/layout.h"

#include <algorithm>
#include <map>
#include <set>

namespace graph {
namespace {

using scheduler::streams::At;

}  // namespace

// Nodes are in program order, so what a node depends on has its place already.
Layout LayOut(const IterationGraph& graph) {
  Layout layout;
  std::map<int, int> columns;  // by assigned stream
  std::map<int, std::set<int>> taken;
  const bool waits =
      std::any_of(graph.operations.begin(), graph.operations.end(),
                  [](const Operation& each) { return each.kind == Operation::Kind::kHostWait; });
  int next_column = waits ? 1 : 0;
  for (NodeId node = 0; node < graph.dag.nodes(); ++node) {
    Place place;
    if (graph.IsWork(node)) {
      const auto [column, is_new] =
          columns.try_emplace(graph.assignment.stream[At(node)], next_column);
      next_column += is_new ? 1 : 0;
      place.column = column->second;
    }
    for (const NodeId before : graph.dag.Predecessors(node))
      place.row = std::max(place.row, layout.places[At(before)].row + 1);
    while (!taken[place.column].insert(place.row).second) ++place.row;
    layout.places.push_back(place);
    layout.rows = std::max(layout.rows, place.row + 1);
  }
  layout.columns = next_column;
  return layout;
}

}  // namespace graph
