// Nimble's assignment against brute force: no assignment with as much concurrency has fewer
// synchronisations, and none with as few synchronisations has fewer streams.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "scheduler/streams/nimble.h"
#include "scheduler/streams/reduction.h"
#include "tests/harness/events.h"
#include "tests/harness/seed.h"
#include "tests/scheduler/streams/graphs.h"

namespace scheduler::streams {
namespace {

constexpr int kRounds = harness::kSanitized ? 5'000 : 100'000;  // brute force is slow there

// Synchronisations and streams.
using Figures = std::pair<int, int>;

Figures FiguresOf(const Assignment& assignment) {
  return {assignment.synchronisations, assignment.streams};
}

// Bit b of row a: a path leads from a to b. Its own transitive closure, by Warshall.
using Rows = std::vector<uint32_t>;

Rows Closure(const Dag& dag) {
  Rows rows(At(dag.nodes()));
  for (NodeId node = 0; node < dag.nodes(); ++node) {
    for (const NodeId next : dag.Successors(node)) rows[At(node)] |= 1u << next;
  }
  for (size_t middle = 0; middle < rows.size(); ++middle) {
    for (uint32_t& row : rows) {
      if ((row >> middle & 1) != 0) row |= rows[middle];
    }
  }
  return rows;
}

// Of all assignments with maximum logical concurrency, that is of all partitions into sets of nodes
// with paths between all of them, the fewest synchronisations, then streams. A partition is chosen
// by each node's predecessor in its set; a mask holds the nodes that have a successor already. A
// synchronisation is saved where a pair has an edge and no longer path.
class AllPartitions {
 public:
  explicit AllPartitions(const Dag& dag) : nodes_(dag.nodes()), reaches_(Closure(dag)) {
    for (NodeId from = 0; from < nodes_; ++from) {
      uint32_t farther = 0;
      for (NodeId next = 0; next < nodes_; ++next) {
        if (Reaches(from, next)) farther |= reaches_[At(next)];
      }
      minimal_.push_back(reaches_[At(from)] & ~farther);
    }
  }

  Figures Fewest() const {
    int edges = 0;
    for (const uint32_t row : minimal_) edges += std::popcount(row);
    const Figures saved = MostSaved(true);
    return {edges - saved.first, nodes_ - saved.second};
  }
  int Width() const { return nodes_ - MostSaved(false).second; }

 private:
  bool Reaches(NodeId from, NodeId to) const { return (reaches_[At(from)] >> to & 1) != 0; }

  // Synchronisations, if they count, and streams.
  Figures MostSaved(bool synchronisations) const {
    constexpr Figures kNever = {-1, -1};
    std::vector<Figures> best(size_t{1} << nodes_, kNever);
    best[0] = {0, 0};
    for (NodeId to = 0; to < nodes_; ++to) {
      for (uint32_t mask = (1u << to); mask-- > 0;) {  // a mask changes into a larger one
        if (best[mask] == kNever) continue;
        for (NodeId from = 0; from < to; ++from) {
          if ((mask >> from & 1) != 0 || !Reaches(from, to)) continue;
          const bool edge = (minimal_[At(from)] >> to & 1) != 0;
          const Figures then = {best[mask].first + (synchronisations && edge),
                                best[mask].second + 1};
          best[mask | 1u << from] = std::max(best[mask | 1u << from], then);
        }
      }
    }
    return *std::max_element(best.begin(), best.end());
  }

  int nodes_;
  Rows reaches_;
  Rows minimal_;
};

// The same by the definitions alone: all functions from nodes to streams that put no two unordered
// nodes onto one stream, and all sets of edges as synchronisations.
class AllPlans {
 public:
  explicit AllPlans(const Dag& dag) : dag_(dag), reaches_(Closure(dag)) {
    for (NodeId node = 0; node < dag.nodes(); ++node) {
      for (const NodeId next : dag.Successors(node)) edges_.push_back({node, next});
    }
  }

  Figures Fewest() {
    std::vector<int> stream;
    Assign(0, &stream);
    return best_;
  }

 private:
  void Assign(int streams, std::vector<int>* stream) {
    const NodeId node = static_cast<NodeId>(stream->size());
    if (node == dag_.nodes()) {
      for (uint32_t plan = 0; plan < 1u << edges_.size(); ++plan) {
        const Figures figures = {std::popcount(plan), streams};
        if (figures < best_ && Safe(*stream, plan)) best_ = figures;
      }
      return;
    }
    for (int one = 0; one <= streams; ++one) {
      bool ordered = true;
      for (NodeId other = 0; other < node; ++other) {
        const bool path = (reaches_[At(other)] >> node & 1) != 0;
        ordered &= path || (*stream)[At(other)] != one;
      }
      if (!ordered) continue;
      stream->push_back(one);
      Assign(std::max(streams, one + 1), stream);
      stream->pop_back();
    }
  }

  bool Safe(const std::vector<int>& stream, uint32_t plan) const {
    Rows after(stream.size());  // bit b of row a: a ends before b begins
    for (size_t from = stream.size(); from-- > 0;) {
      for (size_t to = from + 1; to < stream.size(); ++to) {
        if (stream[from] == stream[to]) after[from] |= 1u << to | after[to];
      }
      for (size_t edge = 0; edge < edges_.size(); ++edge) {
        if ((plan >> edge & 1) == 0 || At(edges_[edge].from) != from) continue;
        after[from] |= 1u << edges_[edge].to | after[At(edges_[edge].to)];
      }
    }
    for (const Edge& edge : edges_) {
      if ((after[At(edge.from)] >> edge.to & 1) == 0) return false;
    }
    return true;
  }

  const Dag& dag_;
  Rows reaches_;
  std::vector<Edge> edges_;
  Figures best_ = {1 << 20, 1 << 20};
};

TEST(OptimalTest, AllGraphsOfFiveNodesByDefinition) {
  for (int nodes = 0; nodes <= 5; ++nodes) {
    for (uint64_t pairs = 0; pairs < uint64_t{1} << std::max(0, nodes * (nodes - 1) / 2); ++pairs) {
      const Dag dag = FromPairs(nodes, pairs);
      ASSERT_EQ(FiguresOf(AssignNimble(dag)), AllPlans(dag).Fewest()) << nodes << ": " << pairs;
    }
  }
}

TEST(OptimalTest, AllGraphsOfSixNodes) {
  for (uint64_t pairs = 0; pairs < 1 << 15; ++pairs) {
    const Dag dag = FromPairs(6, pairs);
    const Assignment assignment = AssignNimble(dag);
    const AllPartitions all(dag);
    ASSERT_EQ(FiguresOf(assignment), all.Fewest()) << pairs;
    ASSERT_EQ(assignment.streams, all.Width()) << pairs;
    ASSERT_TRUE(Valid(dag, assignment)) << pairs;
  }
}

TEST(OptimalTest, RandomGraphsOfSevenToTenNodes) {
  Random random(harness::Seed());
  std::map<int, int> wider;
  for (int round = 0; round < kRounds; ++round) {
    const int nodes = 7 + static_cast<int>(random() % 4);
    const int pairs = nodes * (nodes - 1) / 2;
    uint64_t edges = random() & random();
    if (random() % 2 != 0) edges &= random();  // sparse graphs are wide
    const Dag dag = FromPairs(nodes, edges & ((uint64_t{1} << pairs) - 1));
    const Assignment assignment = AssignNimble(dag);
    const AllPartitions all(dag);
    ASSERT_EQ(FiguresOf(assignment), all.Fewest()) << nodes << " nodes, edges " << edges;
    ASSERT_TRUE(Valid(dag, assignment)) << nodes << " nodes, edges " << edges;
    ASSERT_GE(assignment.streams, all.Width());
    wider[nodes] += assignment.streams > all.Width();
  }
  for (const std::pair<const int, int>& entry : wider) {
    std::printf("%d nodes: %d graphs with more streams than their width\n", entry.first,
                entry.second);
  }
}

// Two of the three maximum matchings leave b and y apart, and then there are four streams.
TEST(OptimalTest, OfAllMaximumMatchingsTheOneWithTheFewestStreams) {
  // a, b -> z -> w, y; x -> y, v
  enum : NodeId { a, b, x, z, w, y, v };
  for (const std::vector<Edge>& edges : {
           std::vector<Edge>{{a, z}, {b, z}, {z, w}, {z, y}, {x, y}, {x, v}},
           std::vector<Edge>{{a, z}, {b, z}, {z, y}, {z, v}, {x, v}, {x, w}},
           std::vector<Edge>{{a, z}, {b, z}, {z, w}, {z, v}, {x, v}, {x, y}},
       }) {
    EXPECT_EQ(FiguresOf(AssignNimble(*Dag::Make(7, edges))), Figures(3, 3));
  }
}

// Four streams are enough, with five synchronisations: a fifth stream saves one.
TEST(OptimalTest, SynchronisationsComeBeforeStreams) {
  // a, b -> z -> w, y; x -> y, v; c -> v; v -> p, q
  enum : NodeId { a, b, x, c, z, v, w, y, p, q };
  const Dag dag =
      *Dag::Make(10, {{a, z}, {b, z}, {z, w}, {z, y}, {x, y}, {x, v}, {c, v}, {v, p}, {v, q}});
  const AllPartitions all(dag);
  EXPECT_EQ(all.Width(), 4);
  EXPECT_EQ(all.Fewest(), Figures(4, 5));
  EXPECT_EQ(FiguresOf(AssignNimble(dag)), Figures(4, 5));
}

}  // namespace
}  // namespace scheduler::streams
