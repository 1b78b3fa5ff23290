#include "cli/sim/serving/costs.h"

#include <gtest/gtest.h>

namespace sim::serving {
namespace {

using scheduler::batching::iteration::Row;
using scheduler::batching::iteration::Step;

Step StepOf(const std::vector<int32_t>& counts, int32_t padding = 0) {
  Step step;
  for (const int32_t count : counts) step.rows.push_back({1, 0, 0, count, 1, 0, {}});
  step.padding = padding;
  return step;
}

constexpr char kTable[] = "# a\nkind,size,ms\nstep,1,10\nstep,3,14\nprompt,11,20\nprompt,21,40\n";

TEST(CostsTest, TimesAreInterpolatedAndGoOnBeyondTheTable) {
  const absl::StatusOr<Costs> costs = Costs::Parse(kTable, "t");
  ASSERT_TRUE(costs.ok()) << costs.status();
  EXPECT_DOUBLE_EQ(costs->StepMs(StepOf({1})), 10);
  EXPECT_DOUBLE_EQ(costs->StepMs(StepOf({1, 1})), 12);
  EXPECT_DOUBLE_EQ(costs->StepMs(StepOf({1}, 4)), 18);
  EXPECT_DOUBLE_EQ(costs->StepMs(StepOf({16, 1, 1})), 32);
  EXPECT_DOUBLE_EQ(costs->StepMs(StepOf({26})), 50);
  EXPECT_DOUBLE_EQ(costs->StepMs(StepOf({6})), 15);  // between a step of one and 11 tokens
}

TEST(CostsTest, TablesThatFallGiveNoNegativeTimes) {
  const absl::StatusOr<Costs> costs =
      Costs::Parse("kind,size,ms\nstep,1,10\nstep,2,4\nprompt,2,4\nprompt,3,2\n", "t");
  ASSERT_TRUE(costs.ok()) << costs.status();
  EXPECT_DOUBLE_EQ(costs->StepMs(StepOf({1, 1, 1})), 4);
  EXPECT_DOUBLE_EQ(costs->StepMs(StepOf({1000})), 2);
  EXPECT_DOUBLE_EQ(costs->StepMs(StepOf({3, 1, 1})), 2);
}

TEST(CostsTest, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(Costs::Parse("kind,size,ms\nstep,0,1\n", "t").status().message(),
            "t:2: not kind,size,ms with a kind of step or prompt: step,0,1");
  EXPECT_EQ(Costs::Parse("kind,size,ms\nstep,2,1\nstep,2,1\n", "t").status().message(),
            "t:3: sizes must ascend");
  EXPECT_FALSE(Costs::Parse("step,1,1\n", "t").ok());
  EXPECT_FALSE(Costs::Parse("kind,size,ms\nstep,1,1\n", "t").ok());
  EXPECT_FALSE(Costs::Parse("kind,size,ms\nstep,1,nan\n", "t").ok());
}

TEST(CostsTest, TheCommittedTableReads) {
  EXPECT_TRUE(Costs::Read(LANEWAY_EXAMPLES "/bloom_176b_a100.csv").ok());
  EXPECT_FALSE(Costs::Read(LANEWAY_EXAMPLES "/none.csv").ok());
}

}  // namespace
}  // namespace sim::serving
