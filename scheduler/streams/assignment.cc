#include "scheduler/streams/assignment.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "scheduler/streams/reduction.h"

namespace scheduler::streams {
namespace {

// Streams by first use, so that equal assignments have equal numbers.
void NumberStreams(const std::vector<int>& stream, Assignment* assignment) {
  const int most = stream.empty() ? 0 : *std::max_element(stream.begin(), stream.end()) + 1;
  std::vector<int> number(At(most), -1);
  assignment->stream.assign(stream.size(), 0);
  for (const NodeId node : assignment->order) {
    int& mine = number[At(stream[At(node)])];
    if (mine < 0) mine = assignment->streams++;
    assignment->stream[At(node)] = mine;
  }
}

// The nodes before each on its stream, or kNoNode.
std::vector<NodeId> Previous(const Assignment& assignment) {
  std::vector<NodeId> last(At(assignment.streams), kNoNode);
  std::vector<NodeId> previous(assignment.order.size(), kNoNode);
  for (const NodeId node : assignment.order) {
    previous[At(node)] = std::exchange(last[At(assignment.stream[At(node)])], node);
  }
  return previous;
}

// Where each node stands in the order.
std::vector<int> Positions(const std::vector<NodeId>& order) {
  std::vector<int> positions(order.size());
  for (size_t i = 0; i < order.size(); ++i) positions[At(order[i])] = static_cast<int>(i);
  return positions;
}

bool IsPermutation(const std::vector<NodeId>& order, int nodes) {
  std::vector<bool> seen(At(nodes));
  for (const NodeId node : order) {
    if (node < 0 || node >= nodes || seen[At(node)]) return false;
    seen[At(node)] = true;
  }
  return order.size() == At(nodes);
}

// Sizes, numbers of streams and of waits, and which nodes record events.
bool Consistent(const Dag& dag, const Assignment& assignment) {
  const size_t nodes = At(dag.nodes());
  if (assignment.stream.size() != nodes || assignment.waits.size() != nodes ||
      assignment.records.size() != nodes || !IsPermutation(assignment.order, dag.nodes())) {
    return false;
  }
  std::vector<bool> used(At(std::max(assignment.streams, 0)));
  for (const int stream : assignment.stream) {
    if (stream < 0 || stream >= assignment.streams) return false;
    used[At(stream)] = true;
  }
  const std::vector<int> positions = Positions(assignment.order);
  std::vector<bool> waited(nodes);
  size_t waits = 0;
  for (NodeId node = 0; node < dag.nodes(); ++node) {
    for (const NodeId other : assignment.waits[At(node)]) {
      if (other < 0 || other >= dag.nodes()) return false;
      if (positions[At(other)] >= positions[At(node)]) return false;
      if (assignment.stream[At(other)] == assignment.stream[At(node)]) return false;
      waited[At(other)] = true;
      ++waits;
    }
  }
  return std::find(used.begin(), used.end(), false) == used.end() && waited == assignment.records &&
         waits == At(assignment.synchronisations);
}

}  // namespace

Assignment Synchronise(const Dag& dag, Placement placement) {
  assert(IsPermutation(placement.order, dag.nodes()));
  assert(placement.stream.size() == placement.order.size());
  Assignment assignment;
  assignment.order = std::move(placement.order);
  NumberStreams(placement.stream, &assignment);
  assignment.waits.resize(At(dag.nodes()));
  assignment.records.resize(At(dag.nodes()));
  const std::vector<NodeId> previous = Previous(assignment);
  const std::vector<int> positions = Positions(assignment.order);
  std::vector<Edge> edges;  // between positions in the order
  for (NodeId node = 0; node < dag.nodes(); ++node) {
    const int to = positions[At(node)];
    if (previous[At(node)] != kNoNode) edges.push_back({positions[At(previous[At(node)])], to});
    for (const NodeId from : dag.Predecessors(node)) edges.push_back({positions[At(from)], to});
  }
  const std::optional<Dag> all = Dag::Make(dag.nodes(), edges);
  assert(all.has_value());
  const Reduction reduction = Reduce(*all);
  for (int to = 0; to < dag.nodes(); ++to) {
    const NodeId node = assignment.order[At(to)];
    for (const int from : reduction.minimal.Predecessors(to)) {
      const NodeId other = assignment.order[At(from)];
      if (assignment.stream[At(other)] == assignment.stream[At(node)]) continue;
      assignment.waits[At(node)].push_back(other);
      assignment.records[At(other)] = true;
      ++assignment.synchronisations;
    }
  }
  return assignment;
}

Placement OneStream(const Dag& dag) {
  Placement placement;
  placement.stream.resize(At(dag.nodes()));
  placement.order.resize(At(dag.nodes()));
  std::iota(placement.order.begin(), placement.order.end(), 0);
  return placement;
}

bool Valid(const Dag& dag, const Assignment& assignment) {
  if (!Consistent(dag, assignment)) return false;
  const std::vector<NodeId> previous = Previous(assignment);
  BitTable before(dag.nodes());  // before.Has(a, b): b has completed when a begins
  for (const NodeId node : assignment.order) {
    std::vector<NodeId> direct = assignment.waits[At(node)];
    if (previous[At(node)] != kNoNode) direct.push_back(previous[At(node)]);
    for (const NodeId other : direct) {
      before.Add(node, other);
      before.AddRow(node, other, 0);
    }
    for (const NodeId other : dag.Predecessors(node)) {
      if (!before.Has(node, other)) return false;
    }
  }
  return true;
}

}  // namespace scheduler::streams
