// The dependency graph of a recorded iteration: operations as nodes, numbered in program order.
//
// Program order is a topological order, so every edge leads from a lower to a higher number, and no
// graph that can be built has a cycle. Edges lie in two arrays, by source and by target: 10,000
// nodes with 100,000 edges take 1 MB. Thread safety: immutable once made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace scheduler::streams {

using NodeId = int32_t;

constexpr NodeId kNoNode = -1;
// Reachability takes a bit for each pair of nodes: 128 MiB at this limit.
constexpr int kNodesMax = 1 << 15;

// Where a vector has what belongs to a node or stream.
inline size_t At(int number) { return static_cast<size_t>(number); }

struct Edge {
  NodeId from = 0;
  NodeId to = 0;
};

class Dag {
 public:
  // Edges in any order; repeated ones count once. nullopt: an edge does not lead from a lower to a
  // higher number below `nodes`, or `nodes` is not in [0, kNodesMax].
  static std::optional<Dag> Make(int nodes, const std::vector<Edge>& edges);

  int nodes() const { return nodes_; }
  int edges() const { return static_cast<int>(successors_.size()); }
  // Ascending.
  std::span<const NodeId> Successors(NodeId node) const {
    return Of(successors_, first_out_, node);
  }
  std::span<const NodeId> Predecessors(NodeId node) const {
    return Of(predecessors_, first_in_, node);
  }

 private:
  explicit Dag(int nodes) : nodes_(nodes) {}
  static std::span<const NodeId> Of(const std::vector<NodeId>& all, const std::vector<int>& first,
                                    NodeId node) {
    const int begin = first[At(node)];
    return std::span(all).subspan(At(begin), At(first[At(node) + 1] - begin));
  }

  int nodes_;
  std::vector<int> first_out_;  // where the successors of each node begin; one more than nodes
  std::vector<NodeId> successors_;
  std::vector<int> first_in_;
  std::vector<NodeId> predecessors_;
};

// The most nodes on one path.
int LongestPath(const Dag& dag);

}  // namespace scheduler::streams
