// What a front has seen of a model is kept in order, bounded, and right about pauses.
#include "serve/history/history.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace serve::history {
namespace {

using scheduler::batching::Refusal;
using scheduler::batching::iteration::Ending;
using scheduler::batching::iteration::Finished;
using scheduler::batching::iteration::Preempted;
using scheduler::batching::iteration::Row;
using scheduler::batching::iteration::Step;

class HistoryTest : public ::testing::Test {
 protected:
  void Arrive(uint64_t number, int64_t now_us, int32_t answers = 1) {
    RequestRecord request;
    request.number = number;
    request.id = "cmpl-" + std::to_string(number);
    request.answers = answers;
    request.prompt_tokens = 20;
    history_.OnArrived(request, now_us);
  }
  static Row RowOf(uint64_t request, int32_t first, int32_t count, int32_t copy = 0) {
    Row row;
    row.request = request;
    row.copy = copy;
    row.first = first;
    row.count = count;
    return row;
  }
  void Begin(uint64_t number, std::vector<Row> rows, int64_t now_us, int32_t blocks = 3) {
    Step step;
    step.number = number;
    step.rows = std::move(rows);
    history_.OnStepBegan(step, blocks, now_us);
  }
  void Ready(int64_t now_us) {
    history_.OnEngineStarted(now_us - 1);
    history_.OnEngineReady(64, now_us);
  }
  RequestRecord Only() const {
    const Records told = history_.Tell();
    EXPECT_EQ(told.requests.size(), 1u);
    return told.requests.front();
  }

  History history_;
};

TEST_F(HistoryTest, ARequestIsToldFromItsArrivalToItsEnd) {
  Ready(10);
  Arrive(1, 100);
  EXPECT_EQ(Only().outcome, Outcome::kOpen);
  Begin(1, {RowOf(1, 16, 4)}, 110);
  history_.OnToken(1, 150);
  history_.OnStepEnded(1, 35, 150);
  Begin(2, {RowOf(1, 20, 1)}, 151);
  history_.OnToken(1, 170);
  history_.OnStepEnded(2, 1'000'000, 170);
  history_.OnAnswerEnded({1, 0, Ending::kLength}, 171);
  const RequestRecord request = Only();
  EXPECT_EQ(request.id, "cmpl-1");
  EXPECT_EQ(request.arrived_us, 100);
  EXPECT_EQ(request.begun_us, 110);
  EXPECT_EQ(request.first_token_us, 150);
  EXPECT_EQ(request.ended_us, 171);
  EXPECT_EQ(request.cached_tokens, 16);
  EXPECT_EQ(request.generated_tokens, 2);
  EXPECT_EQ(request.outcome, Outcome::kLength);
  EXPECT_EQ(request.preemptions, 0);
  EXPECT_TRUE(request.pauses.empty());
  const Records told = history_.Tell();
  ASSERT_EQ(told.steps.size(), 2u);
  EXPECT_EQ(told.steps[0], (StepRecord{1, 110, 150, 35, 4, 0, 1, 3, 0, false}));
  // An engine can't have computed for longer than the front has waited.
  EXPECT_EQ(told.steps[1], (StepRecord{2, 151, 170, 19, 0, 1, 1, 3, 0, false}));
}

TEST_F(HistoryTest, APromptOfOneTokenIsNoDecoding) {
  Ready(10);
  Arrive(1, 11);
  Arrive(2, 11);
  Begin(1, {RowOf(1, 0, 1)}, 12);
  history_.OnToken(1, 13);
  history_.OnStepEnded(1, 1, 13);
  Begin(2, {RowOf(1, 1, 1), RowOf(2, 0, 20)}, 14);
  const StepRecord first = history_.Tell().steps[0], second = history_.Tell().steps[1];
  EXPECT_EQ(first.prompt_tokens, 1);
  EXPECT_EQ(first.decode_tokens, 0);
  EXPECT_EQ(second.prompt_tokens, 20);
  EXPECT_EQ(second.decode_tokens, 1);
  EXPECT_EQ(second.end_us, 0) << "it is in flight";
}

TEST_F(HistoryTest, APreemptedRequestPausesUntilItsNextRow) {
  Ready(10);
  Arrive(1, 11);
  Arrive(2, 11);
  Begin(1, {RowOf(1, 0, 20), RowOf(2, 0, 20)}, 12);
  history_.OnToken(2, 20);
  history_.OnStepEnded(1, 1, 20);
  history_.OnPreempted({2, 0}, 21);
  Begin(2, {RowOf(1, 20, 1)}, 21);
  history_.OnStepEnded(2, 1, 30);
  EXPECT_EQ(history_.Tell().steps[1].preemptions, 1);
  EXPECT_EQ(history_.Tell().requests[1].pauses.at(0), (PauseRecord{21, 0, false, 0}));
  Begin(3, {RowOf(2, 0, 21)}, 31);
  EXPECT_EQ(history_.Tell().steps[2].preemptions, 0);
  const RequestRecord request = history_.Tell().requests[1];
  EXPECT_EQ(request.preemptions, 1);
  EXPECT_EQ(request.recomputations, 0);
  EXPECT_EQ(request.begun_us, 12) << "it has begun once";
  ASSERT_EQ(request.pauses.size(), 1u);
  EXPECT_EQ(request.pauses[0], (PauseRecord{21, 31, false, 0}));
}

TEST_F(HistoryTest, ALostEngineEndsStepsAndPausesThoseThatRun) {
  Ready(10);
  for (const uint64_t request : {1, 2, 3}) Arrive(request, 11);
  Begin(1, {RowOf(1, 0, 20), RowOf(2, 0, 20)}, 12);
  history_.OnStepEnded(1, 1, 20);
  history_.OnPreempted({2, 0}, 21);
  Begin(2, {RowOf(1, 20, 1)}, 21);
  history_.OnEngineLost("it was killed", 40);
  history_.OnEngineStarted(50);
  history_.OnEngineReady(32, 60);
  Begin(3, {RowOf(1, 0, 21), RowOf(2, 0, 21), RowOf(3, 0, 20)}, 61);
  const Records told = history_.Tell();
  EXPECT_FALSE(told.steps[0].lost);
  EXPECT_TRUE(told.steps[1].lost);
  EXPECT_EQ(told.steps[1].end_us, 40);
  EXPECT_EQ(told.requests[0].recomputations, 1);
  EXPECT_EQ(told.requests[0].pauses.at(0), (PauseRecord{40, 61, true, PauseRecord::kAllAnswers}));
  EXPECT_EQ(told.requests[1].recomputations, 0) << "it had no memory to lose";
  EXPECT_EQ(told.requests[1].pauses.at(0), (PauseRecord{21, 61, false, 0}));
  EXPECT_TRUE(told.requests[2].pauses.empty()) << "it had not begun";
  ASSERT_EQ(told.engines.size(), 2u);
  EXPECT_EQ(told.engines[0], (EngineRecord{9, 10, 40, 64, "it was killed"}));
  EXPECT_EQ(told.engines[1], (EngineRecord{50, 60, 0, 32, ""}));
}

TEST_F(HistoryTest, EnginesLostInARowAreOnePauseOfARequest) {
  Ready(10);
  Arrive(1, 11, 2);
  Begin(1, {RowOf(1, 0, 20)}, 12);
  history_.OnToken(1, 13);
  history_.OnToken(1, 13);
  history_.OnStepEnded(1, 1, 13);
  history_.OnEngineLost("first", 20);
  history_.OnEngineLost("could not be started", 30);
  history_.OnEngineStarted(40);
  history_.OnEngineLost("third", 45);
  Ready(50);
  Begin(2, {RowOf(1, 0, 20)}, 51);
  EXPECT_EQ(Only().recomputations, 1);
  EXPECT_EQ(Only().pauses.size(), 1u);
  const Records told = history_.Tell();
  ASSERT_EQ(told.engines.size(), 4u);
  EXPECT_EQ(told.engines[1], (EngineRecord{30, 0, 30, 0, "could not be started"}));
  EXPECT_EQ(told.engines[2], (EngineRecord{40, 0, 45, 0, "third"}));
}

TEST_F(HistoryTest, AnEngineReadyWithoutTheLossBeforeEndsTheOneBefore) {
  Ready(10);
  Arrive(1, 11);
  Begin(1, {RowOf(1, 0, 20)}, 12);
  history_.OnEngineReady(16, 30);
  const Records told = history_.Tell();
  EXPECT_TRUE(told.steps[0].lost);
  ASSERT_EQ(told.engines.size(), 2u);
  EXPECT_EQ(told.engines[0].lost_us, 30);
  EXPECT_EQ(told.engines[1], (EngineRecord{30, 30, 0, 16, ""}));
  EXPECT_EQ(Only().recomputations, 1);
}

TEST_F(HistoryTest, ACancelledRequestEndsItsPause) {
  Ready(10);
  Arrive(1, 11);
  Begin(1, {RowOf(1, 0, 20)}, 12);
  history_.OnStepEnded(1, 1, 13);
  history_.OnPreempted({1, 0}, 14);
  history_.OnAnswerEnded({1, 0, Ending::kCancelled}, 19);
  const RequestRecord request = Only();
  EXPECT_EQ(request.outcome, Outcome::kCancelled);
  EXPECT_EQ(request.ended_us, 19);
  EXPECT_EQ(request.pauses.at(0).end_us, 19);
  EXPECT_EQ(request.first_token_us, 0);
}

TEST_F(HistoryTest, SeveralAnswersAreOneRequestWithPausesOfTheirOwn) {
  Ready(10);
  Arrive(1, 11, 2);
  Begin(1, {RowOf(1, 0, 20)}, 12);
  history_.OnToken(1, 13);
  history_.OnToken(1, 13);
  history_.OnStepEnded(1, 1, 13);
  history_.OnPreempted({1, 1}, 14);
  Begin(2, {RowOf(1, 20, 1, 0)}, 14);
  EXPECT_EQ(Only().pauses.at(0).end_us, 0) << "a row of the other answer";
  history_.OnEngineLost("", 20);
  EXPECT_EQ(Only().recomputations, 1) << "the other answer ran";
  Ready(31);
  Begin(3, {RowOf(1, 0, 21, 0)}, 32);
  EXPECT_EQ(Only().pauses.at(0).end_us, 0);
  EXPECT_EQ(Only().pauses.at(1), (PauseRecord{20, 32, true, PauseRecord::kAllAnswers}));
  history_.OnAnswerEnded({1, 0, Ending::kStopped}, 40);
  EXPECT_EQ(Only().ended_us, 0);
  history_.OnAnswerEnded({1, 1, Ending::kExpired}, 50);
  EXPECT_EQ(Only().ended_us, 50);
  EXPECT_EQ(Only().generated_tokens, 2);
  EXPECT_EQ(Only().outcome, Outcome::kExpired);
  EXPECT_EQ(Only().pauses.at(0).end_us, 50);
}

// Until the prompt is computed the answers are one sequence, whose preemption is that of all.
TEST_F(HistoryTest, APreemptedPromptOfSeveralAnswersHasNothingToLose) {
  Ready(10);
  Arrive(1, 11, 3);
  Begin(1, {RowOf(1, 0, 8)}, 12);
  history_.OnStepEnded(1, 1, 13);
  history_.OnPreempted({1, 0}, 14);
  history_.OnEngineLost("", 20);
  EXPECT_EQ(Only().recomputations, 0);
}

TEST_F(HistoryTest, ARefusedRequestIsKeptApart) {
  Arrive(1, 11);
  history_.OnRejected(1, Refusal::kQueueFull, 11);
  const Records told = history_.Tell();
  EXPECT_TRUE(told.requests.empty());
  ASSERT_EQ(told.refused.size(), 1u);
  EXPECT_EQ(told.refused[0].outcome, Outcome::kRefusedQueueFull);
  EXPECT_TRUE(IsRefusal(told.refused[0].outcome));
}

TEST_F(HistoryTest, ALoadIsKeptOnceATimeAndOnlyWhenItChanges) {
  history_.OnLoad({10, 1, 0, 4});
  history_.OnLoad({11, 1, 0, 4});
  history_.OnLoad({12, 1, 2, 4});
  history_.OnLoad({12, 2, 1, 6});
  const std::deque<LoadRecord> loads = history_.Tell().loads;
  ASSERT_EQ(loads.size(), 2u);
  EXPECT_EQ(loads[0], (LoadRecord{10, 1, 0, 4}));
  EXPECT_EQ(loads[1], (LoadRecord{12, 2, 1, 6}));
}

TEST_F(HistoryTest, WhatIsOldMakesRoom) {
  Ready(1);
  int64_t now_us = 10;
  const uint64_t many = 20'000;
  for (uint64_t i = 1; i <= many; ++i) {
    Arrive(i, ++now_us);
    Begin(i, {RowOf(i, 0, 20)}, ++now_us);
    history_.OnStepEnded(i, 1, ++now_us);
    history_.OnLoad({now_us, static_cast<int32_t>(i), 0, 0});
    history_.OnAnswerEnded({i, 0, Ending::kStopped}, now_us);
    if (i <= kOpenToldMax + 9) Arrive(many + i, now_us);  // goes on
    Arrive(2 * many + i, now_us);
    history_.OnRejected(2 * many + i, Refusal::kQueueFull, now_us);
    if (i % 50 == 0) history_.OnEngineLost("", now_us);
    for (size_t pause = 0; pause < kPausesMax + 2 && i == 1; ++pause)
      history_.OnPreempted({many + 1, 0}, now_us);
  }
  const Records told = history_.Tell();
  EXPECT_EQ(told.steps.size(), kStepsMax);
  EXPECT_EQ(told.steps.back().number, many);
  EXPECT_EQ(told.steps.front().number, many - kStepsMax + 1);
  EXPECT_EQ(told.loads.size(), kLoadsMax);
  EXPECT_EQ(told.requests.size(), kRequestsMax + kOpenToldMax);
  EXPECT_EQ(told.requests[kRequestsMax - 1].number, many);
  EXPECT_EQ(told.requests[kRequestsMax].number, many + 1) << "the oldest that goes on";
  EXPECT_EQ(told.requests[kRequestsMax].pauses.size(), kPausesMax);
  EXPECT_EQ(told.requests[kRequestsMax].preemptions, static_cast<int64_t>(kPausesMax) + 2);
  EXPECT_EQ(told.refused.size(), kRefusedMax);
  EXPECT_EQ(told.engines.size(), kEnginesMax);
}

TEST_F(HistoryTest, WhatIsNotKnownIsIgnored) {
  history_.OnToken(9, 1);
  history_.OnPreempted({9, 0}, 1);
  history_.OnAnswerEnded({9, 0, Ending::kStopped}, 1);
  history_.OnRejected(9, Refusal::kEmpty, 1);
  history_.OnStepEnded(9, 1, 1);
  Begin(1, {RowOf(9, 0, 4)}, 2);
  EXPECT_EQ(history_.Tell().requests.size(), 0u);
  EXPECT_EQ(history_.Tell().steps[0].answers, 1);
}

}  // namespace
}  // namespace serve::history
