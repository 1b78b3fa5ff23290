#include "scheduler/streams/reduction.h"

#include <utility>

namespace scheduler::streams {

Reduction Reduce(const Dag& dag) {
  BitTable reaches(dag.nodes());
  std::vector<Edge> kept;
  // From the last node to the first, so that the rows of successors are complete. Of one node's
  // successors the nearer come first: a path to a farther one can only lead over a nearer one.
  for (NodeId node = dag.nodes() - 1; node >= 0; --node) {
    for (const NodeId next : dag.Successors(node)) {
      if (reaches.Has(node, next)) continue;
      kept.push_back({node, next});
      reaches.Add(node, next);
      reaches.AddRow(node, next, next);
    }
  }
  return {*Dag::Make(dag.nodes(), kept), std::move(reaches)};
}

}  // namespace scheduler::streams
