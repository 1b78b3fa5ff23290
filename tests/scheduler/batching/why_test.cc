// WhyOf() names each state of a batcher that keeps a request from its next token.
#include "scheduler/batching/iteration/why.h"

#include <gtest/gtest.h>

#include "tests/scheduler/batching/driver.h"

namespace scheduler::batching::iteration {
namespace {

Options WhyOptions() {
  Options options;
  options.answers_max = 2;
  options.tokens_max = 64;
  options.watermark_blocks = 1;
  options.prefix_cache = false;
  return options;
}

Standing StandingIn(const Driver& driver, RequestId request) {
  return WhyOf(driver.batcher(), request).value().standing;
}

TEST(WhyTest, ARequestWaitsForAnEngineAndIsComputedThen) {
  Driver driver("budget", WhyOptions());
  driver.Arrive(1, {1, 2, 3}, 10);
  EXPECT_EQ(StandingIn(driver, 1), Standing::kNoEngine);
  driver.Tell(EngineReady{8});
  EXPECT_EQ(StandingIn(driver, 1), Standing::kComputes);
  driver.Finish(driver.Planned());
  const Why why = WhyOf(driver.batcher(), 1).value();
  EXPECT_EQ(why.prompt, 3);
  EXPECT_EQ(why.computed, 3);
  EXPECT_EQ(why.generated, 1);
  EXPECT_EQ(why.generated_max, 10);
  driver.Tell(EngineLost());
  EXPECT_EQ(StandingIn(driver, 1), Standing::kNoEngine);
}

TEST(WhyTest, ARequestThatIsNotKnownHasNoReason) {
  Driver driver("budget", WhyOptions());
  driver.Arrive(1, {1}, 1);
  EXPECT_FALSE(WhyOf(driver.batcher(), 2).has_value());
  driver.Tell(Cancelled{1});
  EXPECT_FALSE(WhyOf(driver.batcher(), 1).has_value());
}

TEST(WhyTest, AsManyAnswersRunAsMay) {
  for (const char* const mode : {"budget", "orca"}) {
    Driver driver(mode, WhyOptions());
    driver.Tell(EngineReady{32});
    driver.Arrive(1, {1}, 10);
    const Step first = driver.Planned();
    for (RequestId request = 2; request <= 4; ++request) driver.Arrive(request, {1}, 10);
    driver.Finish(first);
    EXPECT_EQ(StandingIn(driver, 3), Standing::kAnswers) << mode;
    EXPECT_EQ(StandingIn(driver, 4), Standing::kBehind) << mode;
    EXPECT_EQ(WhyOf(driver.batcher(), 4)->ahead, 1) << mode;
  }
}

TEST(WhyTest, BudgetWantsThePromptsBlocksAndLeavesSomeToOthers) {
  Driver driver("budget", WhyOptions());
  driver.Tell(EngineReady{4});
  driver.Arrive(1, std::vector<Token>(20), 10);  // two blocks
  driver.Arrive(2, std::vector<Token>(30), 2);   // two more, and one that stays free
  driver.Finish(driver.Planned());
  const Why why = WhyOf(driver.batcher(), 2).value();
  EXPECT_EQ(why.standing, Standing::kBlocks);
  EXPECT_EQ(why.blocks, 3);
  EXPECT_EQ(why.available, 2);
}

TEST(WhyTest, OrcaWantsTheBlocksOfTheWholeAnswer) {
  Driver driver("orca", WhyOptions());
  driver.Tell(EngineReady{4});
  driver.Arrive(1, {1}, 40);  // three blocks in the end
  driver.Arrive(2, {1}, 20);  // two
  const Why why = WhyOf(driver.batcher(), 2).value();
  EXPECT_EQ(why.standing, Standing::kBlocks);
  EXPECT_EQ(why.blocks, 2);
  EXPECT_EQ(why.available, 1);
}

TEST(WhyTest, ABatchTakesNoneInUntilItHasEnded) {
  Driver driver("padded", WhyOptions());
  driver.Tell(EngineReady{32});
  driver.Arrive(1, {1}, 2);
  const Step first = driver.Planned();
  driver.Arrive(2, {1}, 2);
  EXPECT_EQ(StandingIn(driver, 2), Standing::kBatch);
  driver.Finish(first);
  EXPECT_EQ(StandingIn(driver, 2), Standing::kBatch);
  driver.Finish(driver.Planned());
  EXPECT_EQ(StandingIn(driver, 2), Standing::kComputes);
}

TEST(WhyTest, WhatEnginesDieOfRunsAlone) {
  Driver driver("budget", WhyOptions());
  driver.Arrive(1, {1}, 10);
  for (int32_t death = 0; death < kSuspectDeaths; ++death) {
    driver.Tell(EngineReady{32});
    driver.Tell(EngineLost());
  }
  driver.Arrive(2, {1}, 10);
  driver.Tell(EngineReady{32});
  EXPECT_EQ(StandingIn(driver, 1), Standing::kComputes);
  EXPECT_EQ(StandingIn(driver, 2), Standing::kBehindAlone);
}

}  // namespace
}  // namespace scheduler::batching::iteration
