// What holds under all modes: refusals, cancellation, deadlines and lost engines.
#include "scheduler/batching/iteration/iteration_batcher.h"

#include <gtest/gtest.h>

#include "scheduler/batching/iteration/modes.h"

namespace scheduler::batching::iteration {
namespace {

TEST(OrderTest, WaitingIsWorthAClassAndADeadlineIsATime) {
  Arrived about;
  about.priority = 2;
  EXPECT_EQ(RankOf(Order::kFcfs, about, 700, 50), 0);
  EXPECT_EQ(RankOf(Order::kPriority, about, 700, 50), 800);
  EXPECT_EQ(RankOf(Order::kDeadline, about, 700, 50), 750);
  about.deadline_us = 9;
  EXPECT_EQ(RankOf(Order::kDeadline, about, 700, 50), 709);
}

class IterationBatcherTest : public ::testing::TestWithParam<std::string> {
 protected:
  IterationBatcherTest() { Make(Options()); }

  void Make(Options options) {
    options.context_max = 64;
    batcher_ = MakeBatcher(GetParam(), options);
    now_us_ = 0;
  }
  std::vector<Action> Tell(const Event& event) {
    std::vector<Action> actions;
    batcher_->OnEvent(event, now_us_, &actions);
    Check(batcher_->state());
    return actions;
  }
  static Arrived Request(RequestId id, size_t prompt, int32_t new_max) {
    Arrived about;
    about.request = id;
    about.tokens.assign(prompt, 3);
    about.new_max = new_max;
    return about;
  }
  template <typename Kind>
  static std::vector<Kind> Of(const std::vector<Action>& actions) {
    std::vector<Kind> found;
    for (const Action& action : actions) {
      if (const Kind* const each = std::get_if<Kind>(&action)) found.push_back(*each);
    }
    return found;
  }

  std::unique_ptr<IterationBatcher> batcher_;
  int64_t now_us_ = 0;
};

TEST_P(IterationBatcherTest, RefusesWhatCanNeverRun) {
  Tell(EngineReady{3});
  EXPECT_EQ(Of<Rejected>(Tell(Request(1, 0, 5))).at(0).why, Refusal::kEmpty);
  EXPECT_EQ(Of<Rejected>(Tell(Request(2, 5, 0))).at(0).why, Refusal::kEmpty);
  EXPECT_EQ(Of<Rejected>(Tell(Request(3, 64, 1))).at(0).why, Refusal::kTooLong);  // context
  EXPECT_EQ(Of<Rejected>(Tell(Request(4, 48, 1))).at(0).why, Refusal::kTooLong);  // memory
  Arrived many = Request(5, 4, 1);
  many.copies = 65;
  EXPECT_EQ(Of<Rejected>(Tell(many)).at(0).why, Refusal::kTooManyCopies);
}

TEST_P(IterationBatcherTest, TheQueueIsBoundedInRequestsAndTokens) {
  Options options;
  options.queue_requests_max = 2;
  options.queue_tokens_max = 40;
  Make(options);
  EXPECT_TRUE(Of<Rejected>(Tell(Request(1, 10, 10))).empty());
  EXPECT_EQ(Of<Rejected>(Tell(Request(2, 11, 10))).at(0).why, Refusal::kQueueFull);
  EXPECT_TRUE(Of<Rejected>(Tell(Request(3, 10, 10))).empty());
  const std::vector<Rejected> refused = Of<Rejected>(Tell(Request(4, 1, 1)));
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].why, Refusal::kQueueFull);
  EXPECT_GE(refused[0].retry_after_s, 1);
}

TEST_P(IterationBatcherTest, AnAnswerIsClippedToContextAndMemory) {
  Tell(EngineReady{2});
  Step step = Of<Step>(Tell(Request(1, 30, 100))).at(0);
  EXPECT_TRUE(Of<Finished>(Tell(StepDone{step.number, {{7, false}}})).empty());
  const std::vector<Finished> ended = Of<Finished>(Tell(StepDone{step.number + 1, {{7, false}}}));
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].why, Ending::kLength);
}

TEST_P(IterationBatcherTest, ACancelledRequestEndsAtOnceAndItsBlocksWithTheStep) {
  Tell(EngineReady{4});
  const Step step = Of<Step>(Tell(Request(1, 20, 9))).at(0);
  const std::vector<Finished> ended = Of<Finished>(Tell(Cancelled{1}));
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].why, Ending::kCancelled);
  EXPECT_GT(batcher_->state().blocks.referenced(), 0);
  EXPECT_TRUE(Of<Finished>(Tell(Cancelled{1})).empty());
  Tell(StepDone{step.number, {{7, false}}});
  EXPECT_EQ(batcher_->state().blocks.referenced(), 0);
  EXPECT_TRUE(batcher_->state().requests.empty());
}

TEST_P(IterationBatcherTest, ADeadlineEndsARequestAndMovesTheTimer) {
  Arrived late = Request(1, 4, 4);
  late.deadline_us = 500;
  EXPECT_EQ(Of<SetTimer>(Tell(late)).at(0).at_us, 500);
  Arrived sooner = Request(2, 4, 4);
  sooner.deadline_us = 200;
  EXPECT_EQ(Of<SetTimer>(Tell(sooner)).at(0).at_us, 200);
  now_us_ = 200;
  const std::vector<Action> actions = Tell(Timer{});
  EXPECT_EQ(Of<Finished>(actions).at(0).why, Ending::kExpired);
  EXPECT_EQ(Of<Finished>(actions).at(0).request, 2u);
  EXPECT_EQ(Of<SetTimer>(actions).at(0).at_us, 500);
  EXPECT_EQ(Of<SetTimer>(Tell(Cancelled{1})).at(0).at_us, kNever);
}

TEST_P(IterationBatcherTest, RequestsGoOnInTheNextEngine) {
  Tell(EngineReady{4});
  const Step step = Of<Step>(Tell(Request(1, 20, 9))).at(0);
  Tell(StepDone{step.number, {{7, false}}});
  EXPECT_TRUE(Tell(EngineLost{}).empty());
  EXPECT_TRUE(Tell(StepDone{step.number + 1, {{7, false}}}).empty());  // of the lost engine
  const Step again = Of<Step>(Tell(EngineReady{4})).at(0);
  EXPECT_EQ(again.rows.at(0).first, 0);
  EXPECT_EQ(again.rows.at(0).count, 21);
}

TEST_P(IterationBatcherTest, AnEngineWithLessMemoryEndsWhatCanNeverFit) {
  Tell(EngineReady{4});
  Tell(Request(1, 40, 9));
  Tell(EngineLost{});
  const std::vector<Finished> ended = Of<Finished>(Tell(EngineReady{2}));
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].why, Ending::kTooLong);
}

// Request 2 kills each engine. After two deaths the suspects run alone, in order, and the one that
// kills again is ended. The other two go on.
TEST_P(IterationBatcherTest, ARequestThatKillsEnginesEndsAlone) {
  Tell(EngineReady{16});
  Tell(Request(1, 4, 2));
  for (RequestId id = 2; id <= 3; ++id) Tell(Request(id, 4, 2));
  // The first request alone may be in the first step: it begins at its arrival.
  Tell(EngineLost{});
  std::vector<Finished> ended;
  std::vector<Step> steps = Of<Step>(Tell(EngineReady{16}));
  for (int round = 0; round < 40 && !batcher_->state().requests.empty(); ++round) {
    ASSERT_FALSE(steps.empty());
    const Step step = steps.back();
    bool kills = false;
    for (const Row& row : step.rows) kills |= row.request == 2;
    std::vector<Action> actions;
    if (kills) {
      actions = Tell(EngineLost{});
      const std::vector<Action> ready = Tell(EngineReady{16});
      actions.insert(actions.end(), ready.begin(), ready.end());
    } else {
      StepDone done = {step.number, {}};
      for (const Row& row : step.rows) {
        for (int32_t i = 0; i < row.samples; ++i) done.sampled.push_back({7, false});
      }
      actions = Tell(done);
    }
    for (const Finished& each : Of<Finished>(actions)) ended.push_back(each);
    steps = Of<Step>(actions);
  }
  ASSERT_EQ(ended.size(), 3u);
  for (const Finished& each : ended) {
    EXPECT_EQ(each.why, each.request == 2 ? Ending::kEngineFault : Ending::kLength);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, IterationBatcherTest, ::testing::ValuesIn(ModeNames()),
                         [](const ::testing::TestParamInfo<std::string>& info) {
                           return info.param;
                         });

}  // namespace
}  // namespace scheduler::batching::iteration
