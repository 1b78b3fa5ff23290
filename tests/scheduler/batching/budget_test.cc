// Mode budget, step by step.
#include <gtest/gtest.h>

#include <deque>
#include <numeric>

#include "tests/scheduler/batching/driver.h"

namespace scheduler::batching::iteration {
namespace {

std::vector<Token> Counting(int32_t size, Token first = 0) {
  std::vector<Token> tokens(static_cast<size_t>(size));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

Options Small() {
  Options options;
  options.answers_max = 4;
  options.tokens_max = 32;
  options.watermark_blocks = 0;
  return options;
}

TEST(BudgetTest, AnswersGetATokenBeforePromptsGetTheRest) {
  Driver driver("budget", Small());
  driver.Tell(EngineReady{32});
  driver.Arrive(1, Counting(4), 20);
  driver.Arrive(2, Counting(100, 50), 20);
  driver.Finish(Step{1, {{1, 0, 0, 4, 1, 0, {}}}, {}, 0});
  for (int32_t chunk = 0; chunk < 3; ++chunk) {
    const Step step = driver.Planned();
    ASSERT_EQ(step.rows.size(), 2u);
    EXPECT_EQ(step.rows[0].count, 1);
    EXPECT_EQ(step.rows[1].count, 31);
    EXPECT_EQ(step.rows[1].samples, 0);
    driver.Finish(step);
  }
  EXPECT_EQ(driver.Planned().rows.at(1).count, 7);
  EXPECT_EQ(driver.Planned().rows.at(1).samples, 1);
}

TEST(BudgetTest, TheLastKeyIsPreemptedAndWaitsUnderIt) {
  Driver driver("budget", Small());
  driver.Arrive(1, Counting(15), 30);
  driver.Arrive(2, Counting(15, 100), 30);
  driver.Tell(EngineReady{3});
  driver.Finish(driver.Planned());  // both have 16 tokens, and their blocks are full
  driver.Finish(driver.Planned());  // request 1 takes the third block
  driver.Arrive(3, Counting(1, 200), 4);
  EXPECT_EQ(driver.state().counters.preemptions, 1);
  EXPECT_EQ(driver.state().requests.running().size(), 1u);
  EXPECT_EQ((*driver.state().requests.waiting().begin())->request(), 2u);
}

TEST(BudgetTest, TheLastKeyOfSeveralAtRestIsPreempted) {
  Driver driver("budget", Small());
  driver.Arrive(1, Counting(15), 30);
  driver.Arrive(2, Counting(5, 100), 30);
  driver.Arrive(3, Counting(5, 200), 30);
  driver.Tell(EngineReady{3});
  driver.Finish(driver.Planned());
  driver.Finish(driver.Planned());  // request 1 lacks a block
  ASSERT_EQ(driver.state().requests.waiting().size(), 1u);
  EXPECT_EQ((*driver.state().requests.waiting().begin())->request(), 3u);
  EXPECT_EQ(driver.Planned().rows.size(), 2u);
}

TEST(BudgetTest, StepsInFlightShareTheAnswersThatRun) {
  Options options = Small();
  options.steps_in_flight_max = 2;
  Driver driver("budget", options);
  const auto requests_of = [](const Step& step) {
    std::vector<RequestId> requests;
    for (const Row& row : step.rows) requests.push_back(row.request);
    return requests;
  };
  driver.Tell(EngineReady{32});
  driver.Arrive(1, Counting(4), 20);
  const Step first = driver.Planned();
  driver.Arrive(2, Counting(4, 10), 20);
  const Step second = driver.Planned();
  driver.Arrive(3, Counting(4, 20), 20);
  driver.Arrive(4, Counting(4, 30), 20);
  driver.Finish(first);
  const Step third = driver.Planned();  // those that begin are no answers yet
  EXPECT_EQ(requests_of(third), (std::vector<RequestId>{1, 3, 4}));
  driver.Finish(second);
  Step before = driver.Planned();
  EXPECT_EQ(requests_of(before), std::vector<RequestId>{2});
  driver.Finish(third);
  // From now on each step has half of them.
  for (int32_t i = 0; i < 4; ++i) {
    const Step after = driver.Planned();
    EXPECT_EQ(after.rows.size(), 2u);
    driver.Finish(before);
    before = after;
  }
}

Options Ahead() {
  Options options = Small();
  options.steps_in_flight_max = 2;
  options.ahead = true;
  return options;
}

TEST(BudgetTest, AStepAheadFollowsTheTokensThatAreBeingDrawn) {
  Driver driver("budget", Ahead());
  driver.Tell(EngineReady{32});
  driver.Arrive(1, Counting(4), 3);
  const std::vector<Step> begun = driver.Of<Step>();
  ASSERT_EQ(begun.size(), 2u);
  EXPECT_EQ(begun[0].rows.at(0).follows, -1);
  EXPECT_EQ(begun[1].rows.at(0).first, 4);
  EXPECT_EQ(begun[1].rows.at(0).follows, 0);
  driver.Finish(begun[0]);
  EXPECT_EQ(driver.Planned().rows.at(0).first, 5);
  driver.Finish(begun[1]);
  EXPECT_TRUE(driver.Planned().rows.empty()) << "the third token is the last";
}

TEST(BudgetTest, AnAnswerThatStopsKeepsItsBlocksForTheStepAhead) {
  Driver driver("budget", Ahead());
  driver.Tell(EngineReady{32});
  driver.Arrive(1, Counting(4), 20);
  const std::vector<Step> begun = driver.Of<Step>();
  driver.Tell(StepDone{begun[0].number, {{7, true}}});
  EXPECT_EQ(driver.Of<Finished>().size(), 1u);
  EXPECT_EQ(driver.state().blocks.referenced(), 1);
  driver.Tell(StepDone{begun[1].number, {{7, true}}});
  EXPECT_TRUE(driver.Of<Finished>().empty()) << "nothing more is told of it";
  EXPECT_EQ(driver.state().blocks.referenced(), 0);
}

TEST(BudgetTest, WhoNeedsTheDrawnTokensDoesNotGoAhead) {
  Driver driver("budget", Ahead());
  driver.Tell(EngineReady{32});
  Arrived about;
  about.request = 1;
  about.tokens = Counting(40);
  about.new_max = 20;
  about.needs_drawn = true;
  driver.Tell(about);
  const std::vector<Step> begun = driver.Of<Step>();
  ASSERT_EQ(begun.size(), 2u);
  EXPECT_EQ(begun[1].rows.at(0).first, 32) << "a prompt is known";
  driver.Finish(begun[0]);
  EXPECT_TRUE(driver.Planned().rows.empty());
  driver.Finish(begun[1]);
  EXPECT_EQ(driver.Of<Step>().size(), 1u);
}

TEST(BudgetTest, AnEngineThatIsLostWithTwoStepsCountsOnce) {
  Driver driver("budget", Ahead());
  driver.Tell(EngineReady{32});
  driver.Arrive(1, Counting(4), 20);
  for (int32_t loss = 0; loss < kSuspectDeaths; ++loss) {
    ASSERT_EQ(driver.Of<Step>().size(), 2u);
    driver.Tell(EngineReady{32});
  }
  EXPECT_TRUE(driver.Of<Finished>().empty());
  driver.Tell(EngineReady{32});
  EXPECT_EQ(driver.Of<Finished>().size(), 1u);
}

// The first key lacks a block while later ones go ahead: these come to rest, and the last is
// preempted.
TEST(BudgetTest, NoneGoesAheadWhileAnEarlierKeyLacksABlock) {
  Driver driver("budget", Ahead());
  driver.Arrive(1, Counting(15), 30);
  driver.Arrive(2, Counting(10, 100), 30);
  driver.Tell(EngineReady{2});
  std::deque<Step> in_flight;
  for (int32_t steps = 0; driver.state().counters.preemptions == 0; ++steps) {
    ASSERT_LT(steps, 5);
    for (const Step& step : driver.Of<Step>()) in_flight.push_back(step);
    const Step first = in_flight.front();
    in_flight.pop_front();
    driver.Finish(first);
  }
  ASSERT_EQ(driver.state().requests.waiting().size(), 1u);
  EXPECT_EQ((*driver.state().requests.waiting().begin())->request(), 2u);
}

TEST(BudgetTest, NoneBeginsBeforeAnEarlierOne) {
  Driver driver("budget", Small());
  driver.Tell(EngineReady{4});
  driver.Arrive(1, Counting(20), 10);
  driver.Arrive(2, Counting(40, 100), 10);  // lacks a block
  driver.Arrive(3, Counting(3, 200), 10);
  driver.Finish(Step{1, {{1, 0, 0, 20, 1, 0, {}}}, {}, 0});
  EXPECT_EQ(driver.Planned().rows.size(), 1u);
}

TEST(BudgetTest, TheWatermarkIsKeptForThoseThatRun) {
  Options options = Small();
  options.watermark_blocks = 2;
  Driver driver("budget", options);
  driver.Tell(EngineReady{4});
  driver.Arrive(1, Counting(20), 10);
  EXPECT_EQ(driver.Planned().rows.size(), 1u);  // alone: two blocks of four
  const Step step = driver.Planned();
  driver.Arrive(2, Counting(3, 200), 10);  // would leave one
  driver.Finish(step);
  EXPECT_EQ(driver.Planned().rows.size(), 1u);
}

TEST(BudgetTest, AKnownPromptIsNotComputedAgain) {
  Driver driver("budget", Small());
  driver.Tell(EngineReady{16});
  driver.Arrive(1, Counting(32), 1);
  driver.Finish(driver.Planned());
  driver.Arrive(2, Counting(32), 1);
  ASSERT_EQ(driver.Planned().rows.size(), 1u);
  EXPECT_EQ(driver.Planned().rows[0].first, 16);  // the last token is always computed
  driver.Finish(driver.Planned());
  driver.Arrive(3, Counting(33), 1);
  EXPECT_EQ(driver.Planned().rows.at(0).first, 32);
  EXPECT_EQ(driver.state().counters.prefix_hit_tokens, 48);
}

TEST(BudgetTest, CopiesShareThePromptAndWriteToBlocksOfTheirOwn) {
  Driver driver("budget", Small());
  driver.Tell(EngineReady{16});
  driver.Arrive(1, Counting(20), 5, 3);
  const Step prompt = driver.Planned();
  ASSERT_EQ(prompt.rows.size(), 1u);
  EXPECT_EQ(prompt.rows[0].samples, 3);
  driver.Finish(prompt);
  const Step step = driver.Planned();
  EXPECT_EQ(step.rows.size(), 3u);
  EXPECT_EQ(step.copies.size(), 2u);  // the last of the three keeps the block
  EXPECT_EQ(driver.state().blocks.referenced(), 4);
}

}  // namespace
}  // namespace scheduler::batching::iteration
