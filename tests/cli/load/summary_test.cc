#include "cli/load/summary.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/load/report.h"

namespace load {
namespace {

Answer Answered(int64_t sent_us, std::vector<int64_t> tokens_us, int64_t end_us) {
  Answer answer;
  answer.status = 200;
  answer.due_us = answer.sent_us = sent_us;
  answer.answer_tokens = static_cast<int64_t>(tokens_us.size());
  answer.prompt_tokens = 10;
  answer.tokens_us = std::move(tokens_us);
  answer.end_us = end_us;
  return answer;
}

Answer Refused(int status, int64_t sent_us, int64_t end_us) {
  Answer answer;
  answer.status = status;
  answer.failure = "no room";
  answer.due_us = answer.sent_us = sent_us;
  answer.end_us = end_us;
  return answer;
}

TEST(SummaryTest, FiguresByHand) {
  const std::vector<Answer> answers = {
      Answered(0, {100'000, 150'000, 300'000}, 301'000), Answered(50'000, {90'000}, 91'000),
      Refused(429, 100'000, 105'000), Refused(503, 100'000, 101'000), Refused(500, 0, 2'000'000)};
  const Summary summary = SummaryOf(answers, {{"ttft", 60}});
  EXPECT_EQ(summary.requests, 5);
  EXPECT_EQ(summary.answered, 2);
  EXPECT_EQ(summary.refused, 2);
  EXPECT_EQ(summary.failed, 1);
  EXPECT_EQ(summary.good, 1);
  EXPECT_DOUBLE_EQ(summary.seconds, 2);
  EXPECT_DOUBLE_EQ(summary.ttft_ms.mean, 70);
  EXPECT_DOUBLE_EQ(summary.tpot_ms.max, 100);  // one token after the first has no meaning
  EXPECT_DOUBLE_EQ(summary.tpot_ms.mean, 100);
  EXPECT_DOUBLE_EQ(summary.itl_ms.p50, 50);
  EXPECT_DOUBLE_EQ(summary.itl_ms.max, 150);
  EXPECT_DOUBLE_EQ(summary.e2el_ms.max, 301);
  EXPECT_DOUBLE_EQ(summary.refusal_ms.max, 5);
  EXPECT_EQ(summary.answer_tokens, 4);
  EXPECT_EQ(summary.failures.at("no room"), 3);
  const nlohmann::json json = nlohmann::json::parse(SummaryJson(summary, {{"ttft", 60}}));
  EXPECT_DOUBLE_EQ(json["answer_tokens_per_s"], 2);
  EXPECT_DOUBLE_EQ(json["goodput_per_s"], 0.5);
  EXPECT_NE(SummaryText(summary, {}).find("3 x no room"), std::string::npos);
}

TEST(SummaryTest, NothingAnsweredIsNoDivisionByZero) {
  const Summary summary = SummaryOf({}, {});
  EXPECT_EQ(summary.PerS(summary.answered), 0);
  EXPECT_NE(SummaryText(summary, {}).find("0 requests"), std::string::npos);
}

}  // namespace
}  // namespace load
