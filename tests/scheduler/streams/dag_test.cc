// The graph's two arrays, and its minimum equivalent graph.
#include "scheduler/streams/dag.h"

#include <gtest/gtest.h>

#include <vector>

#include "scheduler/streams/reduction.h"
#include "tests/scheduler/streams/graphs.h"

namespace scheduler::streams {
namespace {

std::vector<NodeId> List(std::span<const NodeId> nodes) { return {nodes.begin(), nodes.end()}; }

TEST(DagTest, EdgesAreSortedAndCountOnce) {
  const std::optional<Dag> dag = Dag::Make(4, {{1, 3}, {0, 3}, {0, 1}, {1, 3}});
  ASSERT_TRUE(dag.has_value());
  EXPECT_EQ(dag->edges(), 3);
  EXPECT_EQ(List(dag->Successors(0)), (std::vector<NodeId>{1, 3}));
  EXPECT_EQ(List(dag->Predecessors(3)), (std::vector<NodeId>{0, 1}));
  EXPECT_TRUE(dag->Successors(2).empty());
}

TEST(DagTest, AnEdgeThatDoesNotLeadForwardIsRefused) {
  EXPECT_FALSE(Dag::Make(3, {{1, 1}}).has_value());
  EXPECT_FALSE(Dag::Make(3, {{2, 1}}).has_value());
  EXPECT_FALSE(Dag::Make(3, {{2, 3}}).has_value());
  EXPECT_FALSE(Dag::Make(3, {{-1, 2}}).has_value());
  EXPECT_FALSE(Dag::Make(kNodesMax + 1, {}).has_value());
  EXPECT_TRUE(Dag::Make(0, {}).has_value());
}

TEST(ReductionTest, AnEdgeBesideALongerPathGoes) {
  const Reduction reduction = Reduce(*Dag::Make(4, {{0, 1}, {1, 2}, {0, 2}, {2, 3}, {0, 3}}));
  EXPECT_EQ(reduction.minimal.edges(), 3);
  EXPECT_EQ(List(reduction.minimal.Successors(0)), (std::vector<NodeId>{1}));
  EXPECT_TRUE(reduction.reaches.Has(0, 3));
  EXPECT_FALSE(reduction.reaches.Has(3, 0));
  EXPECT_FALSE(reduction.reaches.Has(1, 1));
}

// Of all graphs of five nodes: the same paths, and none of the edges can go.
TEST(ReductionTest, AllGraphsOfFiveNodes) {
  for (uint64_t pairs = 0; pairs < 1 << 10; ++pairs) {
    const Dag dag = FromPairs(5, pairs);
    const Reduction reduction = Reduce(dag);
    for (NodeId from = 0; from < 5; ++from) {
      for (NodeId to = 0; to < 5; ++to) {
        bool beyond = false;  // a path of two edges or more
        for (const NodeId next : dag.Successors(from)) beyond |= reduction.reaches.Has(next, to);
        const std::vector<NodeId> nexts = List(dag.Successors(from));
        const bool edge = std::find(nexts.begin(), nexts.end(), to) != nexts.end();
        const std::vector<NodeId> kept = List(reduction.minimal.Successors(from));
        ASSERT_EQ(reduction.reaches.Has(from, to), edge || beyond) << pairs;
        ASSERT_EQ(std::find(kept.begin(), kept.end(), to) != kept.end(), edge && !beyond) << pairs;
      }
    }
  }
}

}  // namespace
}  // namespace scheduler::streams
