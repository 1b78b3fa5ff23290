// What the model of a V100 says about six published networks: how much faster Nimble's assignment
// is than one stream, with the front end and without it.
#include "scheduler/streams/device_model.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <vector>

#include "scheduler/streams/choose.h"
#include "scheduler/streams/nimble.h"
#include "scheduler/streams/roofline.h"
#include "tests/scheduler/streams/networks.h"

namespace scheduler::streams {
namespace {

TEST(RooflineTest, TheLongerOfArithmeticAndTrafficCounts) {
  constexpr Roofline kDevice = {10, 2, 7, 0};
  EXPECT_DOUBLE_EQ(CostOf({1'000, 100}, kDevice).time_ns, 100);
  EXPECT_DOUBLE_EQ(CostOf({100, 1'000}, kDevice).time_ns, 500);
  EXPECT_DOUBLE_EQ(CostOf({100, 1'000}, kDevice).launch_ns, 7);
}

TEST(RooflineTest, AnOperationOfFewBlocksTakesLongerAndLeavesRoom) {
  constexpr Roofline kDevice = {10, 2, 7, 0};
  const Cost few = CostOf({1'000, 100, 1, 4}, kDevice);
  EXPECT_DOUBLE_EQ(few.share, 0.25);
  EXPECT_DOUBLE_EQ(few.time_ns, 400);
  const Cost many = CostOf({1'000, 100, 9, 4}, kDevice);
  EXPECT_DOUBLE_EQ(many.share, 1);
  EXPECT_DOUBLE_EQ(many.time_ns, 100);
}

struct Row {
  const char* network;
  double with_front_end, without;
};

TEST(SpeedUpTest, NimbleOverOneStream) {
  constexpr Row kRows[] = {
      {"inception_v3", 1.69, 1.70},    {"darts", 1.97, 2.63},          {"amoebanet", 1.97, 2.61},
      {"nasnet_a_mobile", 2.01, 3.10}, {"nasnet_a_large", 1.40, 1.38}, {"resnet50", 1.01, 1.01},
  };
  std::printf("network           with front end  without  chosen by cost\n");
  for (const Row& row : kRows) {
    const std::vector<Operator> operators = ReadNetwork(row.network);
    const std::vector<Cost> costs = CostsOf(operators, kV100);
    const Dag dag = GraphOf(operators);
    const Placement one = OneStream(dag);
    const Assignment nimble = AssignNimble(dag);
    const double one_ns = Makespan(dag, one, costs, kV100.front_end_ns);
    const double with = one_ns / Makespan(nimble, costs, kV100.front_end_ns);
    const double without = Makespan(dag, one, costs, 0) / Makespan(nimble, costs, 0);
    const Choice choice = Choose(dag, costs, kV100.front_end_ns);
    std::printf("%-16s %15.4f %8.4f %15.4f on %d streams\n", row.network, with, without,
                one_ns / choice.makespan_ns, choice.assignment.streams);
    EXPECT_NEAR(with, row.with_front_end, 0.0055) << row.network;
    EXPECT_NEAR(without, row.without, 0.0055) << row.network;
    EXPECT_GE(one_ns / choice.makespan_ns, with) << row.network;
  }
}

}  // namespace
}  // namespace scheduler::streams
