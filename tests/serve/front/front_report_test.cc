// The report of a front names its models and requests, and a question that is none gets a sentence.
#include "serve/front/front_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "scheduler/batching/iteration/modes.h"
#include "serve/front/recent_rate.h"
#include "serve/history/told_history.h"

namespace serve::front {
namespace {

using scheduler::batching::iteration::Action;
using scheduler::batching::iteration::Arrived;
using scheduler::batching::iteration::EngineReady;
using scheduler::batching::iteration::IterationBatcher;
using scheduler::batching::iteration::MakeBatcher;
using ::testing::HasSubstr;

class FrontReportTest : public ::testing::Test {
 protected:
  FrontReportTest() {
    scheduler::batching::iteration::Options options;
    options.answers_max = 1;
    batcher_ = MakeBatcher("budget", options);
    status_.state = llm::EngineState::kReady;
    status_.bytes = 200;
    input_.pid = 7;
    input_.url = "http://127.0.0.1:8000/v1";
    input_.models = {{"small", false, &status_, batcher_.get(), 1000, 120, 12.5}};
  }

  template <typename Event>
  void Tell(const Event& event) {
    std::vector<Action> actions;
    batcher_->OnEvent(event, 0, &actions);
  }
  void Ask(const std::string& id, llm::RequestId request) {
    Arrived about;
    about.request = request;
    about.tokens = {1, 2, 3};
    about.new_max = 4;
    Tell(about);
    input_.calls.push_back({id, 0, {request}, 1000});
  }
  nlohmann::json Answer(const std::string& line) {
    return nlohmann::json::parse(AnswerUntrusted(line, input_));
  }

  std::unique_ptr<IterationBatcher> batcher_;
  llm::EngineStatus status_;
  ReportInput input_;
};

TEST_F(FrontReportTest, AModelIsToldWithItsFigures) {
  Tell(EngineReady{32});
  Ask("cmpl-1", 1);
  Ask("cmpl-2", 2);
  const nlohmann::json answer = Answer(R"({"command":"models"})");
  EXPECT_EQ(answer["pid"], 7);
  const nlohmann::json& model = answer["models"].at(0);
  EXPECT_EQ(model["id"], "small");
  EXPECT_EQ(model["state"], "ready");
  EXPECT_EQ(model["running"], 1);
  EXPECT_EQ(model["waiting"], 1);
  EXPECT_EQ(model["kv_blocks"], 32);
  EXPECT_EQ(model["kv_blocks_used"], 1);
  EXPECT_EQ(model["kv_bytes"], 32 * 1000);
  EXPECT_EQ(model["weight_bytes"], 200);
  EXPECT_EQ(model["generated_tokens"], 120);
  EXPECT_FALSE(model.contains("loaded"));
}

TEST_F(FrontReportTest, AnEngineThatLoadsOrIsLostIsToldWithItsReason) {
  Ask("cmpl-1", 1);
  status_.state = llm::EngineState::kLoading;
  status_.bytes = 200;
  status_.bytes_done = 50;
  EXPECT_EQ(Answer(R"({"command":"models"})")["models"][0]["loaded"], 0.25);
  EXPECT_THAT(Answer(R"({"command":"why"})")["requests"][0]["why"], HasSubstr("loads its weights"));
  status_.state = llm::EngineState::kLost;
  status_.why = "it was killed";
  EXPECT_EQ(Answer(R"({"command":"models"})")["models"][0]["state"], "restarting");
  EXPECT_THAT(Answer(R"({"command":"why"})")["requests"][0]["why"], HasSubstr("it was killed"));
}

TEST_F(FrontReportTest, OneRequestIsAskedForByItsId) {
  Tell(EngineReady{32});
  Ask("cmpl-1", 1);
  Ask("cmpl-2", 2);
  const nlohmann::json requests = Answer(R"({"command":"why","id":"cmpl-2"})")["requests"];
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0]["prompt_tokens"], 3);
  EXPECT_THAT(requests[0]["why"], HasSubstr("no more than 1 run"));
  EXPECT_TRUE(Answer(R"({"command":"why","id":"cmpl-3"})")["requests"].empty());
}

TEST_F(FrontReportTest, AnAnswerThatIsWholeWaitsForItsReader) {
  input_.calls.push_back({"cmpl-1", 0, {}, 1000});
  EXPECT_THAT(Answer(R"({"command":"why"})")["requests"][0]["why"], HasSubstr("read the answer"));
}

TEST_F(FrontReportTest, ManyRequestsAreCountedAndTheOldestTold) {
  Tell(EngineReady{32});
  for (llm::RequestId request = 1; request <= kToldRequestsMax + 5; ++request)
    Ask("cmpl-" + std::to_string(request), request);
  const nlohmann::json answer = Answer(R"({"command":"why"})");
  EXPECT_EQ(answer["requests"].size(), kToldRequestsMax);
  EXPECT_EQ(answer["left_out"], 5);
  EXPECT_EQ(answer["requests"][0]["id"], "cmpl-1");
}

TEST_F(FrontReportTest, AModelsHistoryIsToldByItsPlace) {
  history::History first, second;
  second.OnEngineStarted(5);
  input_.models[0].history = &first;
  input_.models.push_back(input_.models[0]);
  input_.models[1].id = "large";
  input_.models[1].history = &second;
  input_.job = 3;
  input_.now_us = 9;
  history::ToldHistory told;
  ASSERT_TRUE(
      history::DecodeUntrusted(AnswerUntrusted(R"({"command":"trace","model":1})", input_), &told));
  EXPECT_EQ(told.model, "large");
  EXPECT_EQ(told.models, 2u);
  EXPECT_EQ(told.pid, 7);
  EXPECT_EQ(told.job, 3u);
  EXPECT_EQ(told.now_us, 9);
  EXPECT_EQ(told.records, second.Tell());
  ASSERT_TRUE(history::DecodeUntrusted(AnswerUntrusted(R"({"command":"trace"})", input_), &told));
  EXPECT_EQ(told.model, "small");
  EXPECT_TRUE(Answer(R"({"command":"trace","model":2})").contains("error"));
}

TEST_F(FrontReportTest, WhatIsNoQuestionGetsASentence) {
  for (const char* const line :
       {"", "{", "[]", "7", "{}", R"({"command":7})", R"({"command":"stop"})", "\xff\xfe",
        R"({"command":"models)", "[[[[[[[[[[[[[[[[[[[[[[["}) {
    EXPECT_TRUE(Answer(line).contains("error")) << line;
  }
  EXPECT_TRUE(Answer(R"({"command":"why","id":7})")["requests"].empty());
}

TEST_F(FrontReportTest, NamesOfAnyBytesAreTold) {
  input_.models[0].id = "\xff";
  EXPECT_EQ(Answer(R"({"command":"models"})")["models"].size(), 1u);
}

TEST(RecentRateTest, IsOfTheLastTenSeconds) {
  constexpr int64_t kSecond = 1'000'000;
  RecentRate rate;
  EXPECT_EQ(rate.PerSecond(5, 100), 0);
  for (int64_t second = 0; second <= 60; ++second) {
    rate.Note(second * kSecond, second * (second < 30 ? 10 : 20));
    rate.Note(second * kSecond + 1, 1'000'000);  // too soon to be noted
  }
  EXPECT_DOUBLE_EQ(rate.PerSecond(60 * kSecond, 1200), 20);
  EXPECT_DOUBLE_EQ(rate.PerSecond(65 * kSecond, 1200), 100.0 / 10) << "idle for five seconds";
  EXPECT_EQ(rate.PerSecond(90 * kSecond, 1200), 0) << "idle for long";
}

}  // namespace
}  // namespace serve::front
