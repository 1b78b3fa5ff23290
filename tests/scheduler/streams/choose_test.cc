// The model of a device, assignment by cost, and the choice among assignments.
#include "scheduler/streams/choose.h"

#include <gtest/gtest.h>

#include <vector>

#include "scheduler/streams/device_model.h"
#include "scheduler/streams/list_schedule.h"
#include "scheduler/streams/nimble.h"
#include "tests/harness/seed.h"
#include "tests/scheduler/streams/graphs.h"

namespace scheduler::streams {
namespace {

constexpr double kFrontEndNs = 2'000;

Dag Unordered(int nodes) { return *Dag::Make(nodes, {}); }

TEST(DeviceModelTest, OneStreamTakesTheSumOfLaunchesAndTimes) {
  const std::vector<Cost> costs = {{10, 2, 0.5}, {20, 3, 1}, {5, 0, 0.1}};
  EXPECT_DOUBLE_EQ(Makespan(Unordered(3), OneStream(Unordered(3)), costs, 0), 40);
}

TEST(DeviceModelTest, SmallOperationsRunBesideEachOtherAndLargeOnesShare) {
  const Assignment two = AssignNimble(Unordered(2));
  EXPECT_DOUBLE_EQ(Makespan(two, {{10, 0, 0.5}, {10, 0, 0.5}}, 0), 10);
  EXPECT_DOUBLE_EQ(Makespan(two, {{10, 0, 1}, {10, 0, 1}}, 0), 20);
  // Shares of 1.5 together: both slow down by 1.5 until the first has run its 10, at 15.
  EXPECT_DOUBLE_EQ(Makespan(two, {{10, 0, 0.5}, {20, 0, 1}}, 0), 25);
}

TEST(DeviceModelTest, TheFrontEndStartsOneAfterAnother) {
  const Assignment three = AssignNimble(Unordered(3));
  const std::vector<Cost> costs(3, {10, 2, 0.1});
  EXPECT_DOUBLE_EQ(Makespan(three, costs, 0), 12);
  EXPECT_DOUBLE_EQ(Makespan(three, costs, 4), 20) << "the third is started at 8";
}

TEST(DeviceModelTest, AWaitDelays) {
  const Dag dag = *Dag::Make(3, {{0, 2}, {1, 2}});
  EXPECT_DOUBLE_EQ(Makespan(AssignNimble(dag), {{10, 0, 0.1}, {30, 0, 0.1}, {5, 0, 0.1}}, 0), 35);
}

TEST(ListTest, TheLongestPathComesFirst) {
  // 2 -> 3 is the longest path, and comes last in program order.
  const Dag dag = *Dag::Make(4, {{2, 3}});
  const std::vector<Cost> costs = {{12, 0, 0.1}, {10, 0, 0.1}, {10, 0, 0.1}, {20, 0, 0.1}};
  const Assignment assignment = Synchronise(dag, PlaceByList(dag, costs, {2}));
  EXPECT_EQ(assignment.order, (std::vector<NodeId>{2, 0, 3, 1}));
  EXPECT_EQ(assignment.synchronisations, 0) << "3 runs on the stream of 2";
  EXPECT_DOUBLE_EQ(Makespan(assignment, costs, 0), 30);
}

TEST(ListTest, AFullDeviceTakesNoMoreWhereAskedFor) {
  const std::vector<Cost> costs(3, {10, 0, 1});
  EXPECT_EQ(PlaceByList(Unordered(3), costs, {3, false}).stream, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(PlaceByList(Unordered(3), costs, {3, true}).stream, (std::vector<int>{0, 0, 0}));
}

TEST(ChooseTest, AChainGetsOneStreamAndBranchesMore) {
  const std::vector<Cost> costs(50, {10'000, 2'000, 0.1});
  EXPECT_EQ(Choose(Chain(50), costs, kFrontEndNs).algorithm, Algorithm::kOneStream);
  const Choice wide = Choose(Wide(50), costs, kFrontEndNs);
  EXPECT_NE(wide.algorithm, Algorithm::kOneStream);
  EXPECT_LT(wide.makespan_ns, Makespan(Wide(50), OneStream(Wide(50)), costs, kFrontEndNs) / 3);
}

TEST(ChooseTest, NeverWorseThanOneStreamOrNimble) {
  Random random(harness::Seed());
  int better = 0;
  for (int round = 0; round < 500; ++round) {
    const int nodes = 1 + static_cast<int>(random() % 80);
    const Dag dag = RandomDag(nodes, nodes * (1 + static_cast<int>(random() % 3)), 30, &random);
    const std::vector<Cost> costs = RandomCosts(nodes, &random);
    const double front_end_ns = random() % 2 == 0 ? 0 : kFrontEndNs;
    const int cap = random() % 2 == 0 ? kNoCap : 1 + static_cast<int>(random() % 5);
    const Choice choice = Choose(dag, costs, front_end_ns, cap);
    const double nimble = Makespan(AssignNimble(dag, cap), costs, front_end_ns);
    ASSERT_TRUE(Valid(dag, choice.assignment));
    ASSERT_LE(choice.assignment.streams, cap);
    ASSERT_LE(choice.makespan_ns, nimble);
    ASSERT_LE(choice.makespan_ns, Makespan(dag, OneStream(dag), costs, front_end_ns));
    ASSERT_EQ(choice.makespan_ns, Makespan(choice.assignment, costs, front_end_ns));
    better += choice.algorithm == Algorithm::kList;
  }
  EXPECT_GT(better, 50) << "costs make a difference";
}

TEST(ChooseTest, SchedulesOfTenThousandNodesAreValid) {
  Random random(harness::Seed());
  for (const Dag& dag :
       {RandomDag(10'000, 20'000, 100, &random), Layered(10'000, 100, 3, &random)}) {
    const std::vector<Cost> costs = RandomCosts(dag.nodes(), &random);
    for (const bool fills : {false, true}) {
      const Placement placement = PlaceByList(dag, costs, {16, fills, kFrontEndNs});
      EXPECT_TRUE(Valid(dag, Synchronise(dag, placement)));
    }
  }
}

}  // namespace
}  // namespace scheduler::streams
