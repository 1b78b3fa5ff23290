#include "scheduler/streams/dag.h"

#include <algorithm>

namespace scheduler::streams {
namespace {

// Where each node's part of an array begins, given how many entries each node has.
std::vector<int> Begins(const std::vector<int>& counts) {
  std::vector<int> begins(counts.size() + 1);
  for (size_t i = 0; i < counts.size(); ++i) begins[i + 1] = begins[i] + counts[i];
  return begins;
}

}  // namespace

std::optional<Dag> Dag::Make(int nodes, const std::vector<Edge>& edges) {
  if (nodes < 0 || nodes > kNodesMax) return std::nullopt;
  const size_t size = At(nodes);
  std::vector<int> counts(size);
  for (const Edge& edge : edges) {
    if (edge.from < 0 || edge.from >= edge.to || edge.to >= nodes) return std::nullopt;
    ++counts[At(edge.from)];
  }
  std::vector<int> next = Begins(counts);
  const std::vector<int> bounds = next;
  std::vector<NodeId> targets(edges.size());
  for (const Edge& edge : edges) {
    targets[At(next[static_cast<size_t>(edge.from)]++)] = edge.to;
  }

  Dag dag(nodes);
  dag.first_out_.assign(1, 0);
  std::vector<int> incoming(size);
  for (size_t node = 0; node < size; ++node) {
    const std::vector<NodeId>::iterator begin = targets.begin() + bounds[node];
    const std::vector<NodeId>::iterator end = targets.begin() + bounds[node + 1];
    std::sort(begin, end);
    dag.successors_.insert(dag.successors_.end(), begin, std::unique(begin, end));
    dag.first_out_.push_back(static_cast<int>(dag.successors_.size()));
    for (const NodeId to : dag.Successors(static_cast<NodeId>(node))) {
      ++incoming[At(to)];
    }
  }
  dag.first_in_ = Begins(incoming);
  std::vector<int> place = dag.first_in_;
  dag.predecessors_.resize(dag.successors_.size());
  for (NodeId node = 0; node < nodes; ++node) {
    for (const NodeId to : dag.Successors(node)) {
      dag.predecessors_[At(place[static_cast<size_t>(to)]++)] = node;
    }
  }
  return dag;
}

int LongestPath(const Dag& dag) {
  std::vector<int> length(At(dag.nodes()), 1);
  int longest = 0;
  for (NodeId node = 0; node < dag.nodes(); ++node) {
    int& own = length[At(node)];
    for (const NodeId before : dag.Predecessors(node)) own = std::max(own, length[At(before)] + 1);
    longest = std::max(longest, own);
  }
  return longest;
}

}  // namespace scheduler::streams
