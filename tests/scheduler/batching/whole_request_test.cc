// Modes padded and fastertransformer, step by step.
#include <gtest/gtest.h>

#include "tests/scheduler/batching/driver.h"

namespace scheduler::batching::iteration {
namespace {

std::vector<int32_t> Counts(const Step& step) {
  std::vector<int32_t> counts;
  for (const Row& row : step.rows) counts.push_back(row.count);
  return counts;
}

// Requests 1 (5 tokens, 3 new) and 2 (9 tokens, 1 new) are one batch; request 3 comes later.
void ArriveBeforeTheEngine(Driver* driver) {
  driver->Arrive(1, std::vector<Token>(5, 1), 3);
  driver->Arrive(2, std::vector<Token>(9, 1), 1);
  driver->Tell(EngineReady{8});
}

TEST(WholeRequestTest, PaddedComputesTheLongestPromptAndAnswersTogether) {
  Driver driver("padded", Options());
  ArriveBeforeTheEngine(&driver);
  Step step = driver.Planned();
  EXPECT_EQ(Counts(step), (std::vector<int32_t>{5, 9}));
  EXPECT_EQ(step.padding, 4);
  driver.Arrive(3, {1, 2}, 1);
  EXPECT_TRUE(driver.Planned().rows.empty());
  driver.Finish(step);
  EXPECT_TRUE(driver.Of<Finished>().empty());  // request 2 has its token, and waits for request 1
  step = driver.Planned();
  EXPECT_EQ(Counts(step), (std::vector<int32_t>{1}));
  EXPECT_EQ(step.padding, 1);
  driver.Finish(step);
  driver.Finish(driver.Planned());
  EXPECT_EQ(driver.Of<Finished>().size(), 2u);
  EXPECT_EQ(driver.Planned().rows.at(0).request, 3u);
}

TEST(WholeRequestTest, FasterTransformerComputesTheShortestPromptThenTokenByToken) {
  Driver driver("fastertransformer", Options());
  ArriveBeforeTheEngine(&driver);
  Step step = driver.Planned();
  EXPECT_EQ(Counts(step), (std::vector<int32_t>{5, 5}));
  EXPECT_EQ(step.padding, 0);
  EXPECT_EQ(step.rows[1].samples, 0);
  int steps = 1;
  for (; driver.state().requests.running().size() == 2; ++steps) {
    driver.Finish(step);
    step = driver.Planned();
  }
  EXPECT_EQ(steps, 6);  // 5 tokens of both prompts, then 4 more of the longer one, then none
}

TEST(WholeRequestTest, ACancelledMemberLeavesItsPlaceEmpty) {
  Driver driver("padded", Options());
  ArriveBeforeTheEngine(&driver);
  const Step step = driver.Planned();
  driver.Tell(Cancelled{2});
  driver.Finish(step);
  EXPECT_EQ(driver.Planned().padding, 1);
}

}  // namespace
}  // namespace scheduler::batching::iteration
