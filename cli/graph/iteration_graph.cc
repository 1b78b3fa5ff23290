#include "cli/graph/iteration_graph.h"

#include <algorithm>

#include "ipc/call_trace.h"
#include "scheduler/streams/nimble.h"
#include "scheduler/streams/reduction.h"

namespace graph {
namespace {

using scheduler::streams::Access;
using scheduler::streams::At;
using scheduler::streams::BitTable;
using scheduler::streams::kNoNode;

bool KnowsNothing(const Operation& operation) {
  return operation.kind == Operation::Kind::kHostWait || !operation.unknown.empty();
}

bool SharesWhatIsWritten(const std::vector<Touch>& a, const std::vector<Touch>& b) {
  for (const Touch& one : a) {
    for (const Touch& other : b) {
      if (one.access == Access::kRead && other.access == Access::kRead) continue;
      if (one.range.begin < other.range.end() && other.range.begin < one.range.end()) return true;
    }
  }
  return false;
}

bool Depends(const Operation& later, const Operation& earlier) {
  return KnowsNothing(later) || KnowsNothing(earlier) ||
         SharesWhatIsWritten(later.touches, earlier.touches);
}

int64_t Weight(const Operation& operation, bool by_time) {
  if (by_time) return std::max<int64_t>(0, operation.time_ns);
  return operation.kind == Operation::Kind::kHostWait ? 0 : 1;
}

void CountStreams(IterationGraph* graph) {
  std::vector<bool> works(At(graph->assignment.streams));
  for (NodeId node = 0; node < graph->dag.nodes(); ++node) {
    if (!graph->IsWork(node)) continue;
    works[At(graph->assignment.stream[At(node)])] = true;
    for (const NodeId before : graph->assignment.waits[At(node)])
      graph->synchronisations += graph->IsWork(before) ? 1 : 0;
    const uint32_t slot = graph->operations[At(node)].slot;
    if (std::find(graph->slots.begin(), graph->slots.end(), slot) == graph->slots.end())
      graph->slots.push_back(slot);
  }
  graph->streams = static_cast<int>(std::count(works.begin(), works.end(), true));
}

void MeasurePath(IterationGraph* graph) {
  graph->critical.resize(graph->operations.size());
  for (const NodeId node : CriticalPath(graph->dag, graph->operations)) {
    graph->critical[At(node)] = true;
    graph->path_ns += std::max<int64_t>(0, graph->operations[At(node)].time_ns);
    graph->path_operations += graph->IsWork(node) ? 1 : 0;
  }
  for (const Operation& operation : graph->operations) {
    graph->sum_ns += std::max<int64_t>(0, operation.time_ns);
    graph->timed += operation.time_ns >= 0 ? 1 : 0;
  }
}

}  // namespace

// Looks from each operation back to the first one. No edge is needed from an operation that comes
// before another one on which the operation depends.
Dag DependenciesOf(const std::vector<Operation>& operations, const Dag& program_order) {
  const BitTable ordered = scheduler::streams::Reduce(program_order).reaches;
  const int nodes = program_order.nodes();
  BitTable before(nodes);  // of each node what it comes after, by its dependencies
  std::vector<Edge> edges;
  for (NodeId node = 0; node < nodes; ++node) {
    for (NodeId other = node - 1; other >= 0; --other) {
      if (!ordered.Has(other, node) || before.Has(node, other)) continue;
      if (!Depends(operations[At(node)], operations[At(other)])) continue;
      edges.push_back({other, node});
      before.Add(node, other);
      before.AddRow(node, other, 0);
    }
  }
  return scheduler::streams::Reduce(*Dag::Make(nodes, edges)).minimal;
}

std::vector<NodeId> CriticalPath(const Dag& dag, const std::vector<Operation>& operations) {
  const bool by_time = std::any_of(operations.begin(), operations.end(),
                                   [](const Operation& each) { return each.time_ns > 0; });
  std::vector<int64_t> length(operations.size());
  std::vector<NodeId> from(operations.size(), kNoNode);
  NodeId last = kNoNode;
  for (NodeId node = 0; node < dag.nodes(); ++node) {
    for (const NodeId before : dag.Predecessors(node)) {
      if (from[At(node)] == kNoNode || length[At(before)] > length[At(from[At(node)])])
        from[At(node)] = before;
    }
    length[At(node)] = Weight(operations[At(node)], by_time);
    if (from[At(node)] != kNoNode) length[At(node)] += length[At(from[At(node)])];
    if (last == kNoNode || length[At(node)] > length[At(last)]) last = node;
  }
  std::vector<NodeId> path;
  for (NodeId node = last; node != kNoNode; node = from[At(node)]) path.push_back(node);
  std::reverse(path.begin(), path.end());
  return path;
}

std::optional<IterationGraph> MakeGraph(IterationWork work) {
  const std::optional<Dag> order = Dag::Make(static_cast<int>(work.operations.size()), work.order);
  if (!order.has_value()) return std::nullopt;
  IterationGraph graph;
  graph.operations = std::move(work.operations);
  graph.event_waits = work.event_waits;
  graph.joins = work.joins;
  graph.dag = DependenciesOf(graph.operations, *order);
  graph.assignment = scheduler::streams::AssignNimble(graph.dag);
  CountStreams(&graph);
  MeasurePath(&graph);
  return graph;
}

}  // namespace graph
