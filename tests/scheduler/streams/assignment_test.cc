// Waits, the checker, the cap, and graphs of 10,000 nodes.
#include "scheduler/streams/assignment.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "scheduler/streams/nimble.h"
#include "scheduler/streams/reduction.h"
#include "tests/harness/seed.h"
#include "tests/scheduler/streams/graphs.h"

namespace scheduler::streams {
namespace {

Dag Diamond() { return *Dag::Make(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}); }

TEST(AssignmentTest, ADiamondTakesTwoStreamsAndTwoWaits) {
  const Assignment diamond = AssignNimble(Diamond());
  EXPECT_EQ(diamond.streams, 2);
  EXPECT_EQ(diamond.synchronisations, 2);
  EXPECT_EQ(diamond.stream, (std::vector<int>{0, 0, 1, 0}));
  EXPECT_EQ(diamond.waits, (std::vector<std::vector<NodeId>>{{}, {}, {0}, {2}}));
  EXPECT_EQ(diamond.records, (std::vector<bool>{true, false, true, false}));
  EXPECT_TRUE(Valid(Diamond(), diamond));
}

TEST(AssignmentTest, AChainTakesOneStreamAndAnEmptyGraphNone) {
  EXPECT_EQ(AssignNimble(Chain(100)).streams, 1);
  EXPECT_EQ(AssignNimble(Chain(100)).synchronisations, 0);
  EXPECT_EQ(AssignNimble(Chain(0)).streams, 0);
  EXPECT_TRUE(Valid(Chain(0), AssignNimble(Chain(0))));
}

// The hourglass has two chains of matched edges and a node left at either end: those share a
// stream.
TEST(AssignmentTest, AStreamIsUsedAgainByAChainThatComesLater) {
  const Dag hourglass = *Dag::Make(5, {{0, 2}, {1, 2}, {2, 3}, {2, 4}});
  const Assignment assignment = AssignNimble(hourglass);
  EXPECT_EQ(assignment.streams, 2);
  EXPECT_EQ(assignment.synchronisations, 2);
  EXPECT_TRUE(Valid(hourglass, assignment));
}

TEST(AssignmentTest, AWaitThatTheStreamsOrderMakesNeedlessGoes) {
  // 0 and 1 are unordered but on one stream, so the wait for 1 is one for 0 as well.
  const Dag dag = *Dag::Make(3, {{0, 2}, {1, 2}});
  const Assignment assignment = Synchronise(dag, {{0, 0, 1}, {0, 1, 2}});
  EXPECT_EQ(assignment.waits[2], (std::vector<NodeId>{1}));
  EXPECT_TRUE(Valid(dag, assignment));
  const Assignment swapped = Synchronise(dag, {{7, 7, 3}, {1, 0, 2}});
  EXPECT_EQ(swapped.waits[2], (std::vector<NodeId>{0}));
  EXPECT_EQ(swapped.stream, (std::vector<int>{0, 0, 1}));
}

TEST(ValidTest, AFaultIsFound) {
  const Assignment good = AssignNimble(Diamond());
  Assignment bad = good;
  bad.waits[3].clear();
  bad.records[2] = false;
  bad.synchronisations = 1;
  EXPECT_FALSE(Valid(Diamond(), bad)) << "a dependency without a wait";
  bad = good;
  bad.records[2] = false;
  EXPECT_FALSE(Valid(Diamond(), bad)) << "a wait for an event that is not recorded";
  bad = good;
  bad.records[1] = true;
  EXPECT_FALSE(Valid(Diamond(), bad)) << "an event without a wait";
  bad = good;
  bad.synchronisations = 3;
  EXPECT_FALSE(Valid(Diamond(), bad)) << "a wrong count";
  bad = good;
  std::swap(bad.order[0], bad.order[1]);
  EXPECT_FALSE(Valid(Diamond(), bad)) << "issued before a node that it depends on";
  bad = good;
  bad.order[1] = 0;
  EXPECT_FALSE(Valid(Diamond(), bad)) << "issued twice";
  bad = good;
  bad.streams = 3;
  EXPECT_FALSE(Valid(Diamond(), bad)) << "a stream without nodes";
}

TEST(CapTest, EveryCapIsKeptAndValid) {
  Random random(harness::Seed());
  for (int round = 0; round < 300; ++round) {
    const int nodes = 1 + static_cast<int>(random() % 60);
    const Dag dag = RandomDag(nodes, nodes * 3 / 2, 20, &random);
    const Assignment uncapped = AssignNimble(dag);
    for (int cap = 1; cap <= uncapped.streams + 1; ++cap) {
      const Assignment assignment = AssignNimble(dag, cap);
      ASSERT_EQ(assignment.streams, std::min(cap, uncapped.streams));
      ASSERT_TRUE(Valid(dag, assignment));
    }
    ASSERT_EQ(AssignNimble(dag, uncapped.streams).waits, uncapped.waits);
    ASSERT_EQ(AssignNimble(dag, 1).synchronisations, 0);
  }
}

// Nodes of one stream have a path between them.
bool FullyConcurrent(const Reduction& reduction, const Assignment& assignment) {
  std::vector<NodeId> last(At(assignment.streams), kNoNode);
  for (const NodeId node : assignment.order) {
    NodeId& before = last[At(assignment.stream[static_cast<size_t>(node)])];
    if (before != kNoNode && !reduction.reaches.Has(before, node)) return false;
    before = node;
  }
  return true;
}

TEST(LargeTest, TenThousandNodes) {
  Random random(harness::Seed());
  const std::vector<Dag> dags = {RandomDag(10'000, 15'000, 10'000, &random),
                                 RandomDag(10'000, 20'000, 100, &random),
                                 RandomDag(10'000, 100'000, 1'000, &random),
                                 Layered(10'000, 100, 3, &random),
                                 Wide(10'000),
                                 Chain(10'000),
                                 Ladder(10'000)};
  for (const Dag& dag : dags) {
    const Assignment assignment = AssignNimble(dag);
    EXPECT_TRUE(Valid(dag, assignment));
    EXPECT_TRUE(FullyConcurrent(Reduce(dag), assignment));
    const Assignment capped = AssignNimble(dag, 8);
    EXPECT_LE(capped.streams, 8);
    EXPECT_TRUE(Valid(dag, capped));
  }
  EXPECT_EQ(AssignNimble(Wide(10'000)).streams, 9'998);
  EXPECT_EQ(AssignNimble(Ladder(10'000)).streams, 2);
}

}  // namespace
}  // namespace scheduler::streams
