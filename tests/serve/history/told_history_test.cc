// A front's history as JSON: read as it was written, bounded, and refused where it makes no sense.
#include "serve/history/told_history.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "tests/harness/seed.h"

namespace serve::history {
namespace {

using Json = nlohmann::json;

RequestRecord WholeRequest() {
  RequestRecord request = {1, "cmpl-\"1\"\n", 2, 3, 40, 16, 9, 100, 110, 150, 400};
  request.outcome = Outcome::kStopped;
  request.preemptions = 1;
  request.recomputations = 2;
  request.pauses = {{200, 220, false, 1}, {300, 0, true, PauseRecord::kAllAnswers}};
  return request;
}

ToldHistory Whole() {
  ToldHistory told = {7, 3, "http://[::1]:8000/v1", 2, "small", 500, {}};
  told.records.steps = {{1, 110, 150, 35, 4, 0, 1, 3, 0, false},
                        {2, 151, 0, 0, 0, 1, 1, 3, 2, true}};
  told.records.loads = {{110, 1, 2, 3}, {500, 0, 0, 0}};
  told.records.requests = {WholeRequest(), RequestRecord()};
  told.records.refused = {RequestRecord()};
  told.records.refused[0].outcome = Outcome::kRefusedQueueFull;
  told.records.engines = {{9, 10, 40, 64, "it was killed"}, {50, 0, 0, 0, ""}};
  return told;
}

TEST(ToldHistoryTest, IsReadAsItWasWritten) {
  ToldHistory read;
  ASSERT_TRUE(DecodeUntrusted(Encode(Whole()), &read));
  EXPECT_EQ(read, Whole());
}

TEST(ToldHistoryTest, EveryOutcomeHasANameOfItsOwn) {
  for (int outcome = 0; outcome < kOutcomes; ++outcome) {
    ToldHistory told = Whole(), read;
    told.records.requests[0].outcome = static_cast<Outcome>(outcome);
    ASSERT_TRUE(DecodeUntrusted(Encode(told), &read));
    EXPECT_EQ(read, told) << NameOf(static_cast<Outcome>(outcome));
  }
}

TEST(ToldHistoryTest, TextsOfOtherEncodingsAreTold) {
  ToldHistory told = Whole(), read;
  told.model = told.records.requests[0].id = told.records.engines[0].why = "\xff";
  EXPECT_TRUE(DecodeUntrusted(Encode(told), &read));
}

TEST(ToldHistoryTest, WhatMakesNoSenseIsRefused) {
  const auto refused = [](const std::function<void(Json*)>& change) {
    Json json = Json::parse(Encode(Whole()));
    change(&json);
    ToldHistory read;
    return !DecodeUntrusted(json.dump(), &read);
  };
  EXPECT_FALSE(refused([](Json*) {}));
  EXPECT_TRUE(refused([](Json* json) { (*json)["more"] = Json::parse("[[[[[[[[7]]]]]]]]"); }));
  EXPECT_FALSE(refused([](Json* json) { (*json)["more"] = Json::parse("[[[[[[[7]]]]]]]"); }));
  for (const char* const name :
       {"pid", "job", "models", "now_us", "steps", "loads", "requests", "refused", "engines"}) {
    EXPECT_TRUE(refused([name](Json* json) { json->erase(name); })) << name;
    EXPECT_TRUE(refused([name](Json* json) { (*json)[name] = "x"; })) << name;
    EXPECT_TRUE(refused([name](Json* json) { (*json)[name] = -1; })) << name;
  }
  const auto refused_step = [&refused](size_t at, const Json& value) {
    return refused([&](Json* json) { (*json)["steps"][0][at] = value; });
  };
  EXPECT_TRUE(refused_step(1, 501)) << "begins after the answer";
  EXPECT_TRUE(refused_step(2, 109)) << "ends before its begin";
  EXPECT_TRUE(refused_step(4, int64_t{1} << 31));
  EXPECT_TRUE(refused_step(4, 1.5));
  EXPECT_TRUE(refused_step(0, UINT64_MAX));
  EXPECT_TRUE(refused_step(9, 2));
  EXPECT_TRUE(refused([](Json* json) { (*json)["steps"][0].erase(9); }));
  EXPECT_TRUE(refused([](Json* json) { (*json)["steps"][0] = 7; }));
  const auto refused_request = [&refused](const char* name, const Json& value) {
    return refused([&](Json* json) { (*json)["requests"][0][name] = value; });
  };
  EXPECT_TRUE(refused_request("begun_us", 99)) << "before it arrived";
  EXPECT_TRUE(refused_request("begun_us", 0)) << "a token before its begin";
  EXPECT_TRUE(refused_request("first_token_us", 109));
  EXPECT_TRUE(refused_request("ended_us", 149));
  EXPECT_TRUE(refused_request("ended_us", 501));
  EXPECT_TRUE(refused_request("outcome", "otherwise"));
  EXPECT_TRUE(refused_request("pauses", Json::array({Json::array({200, 199, 0, 0})})));
  EXPECT_TRUE(refused_request("pauses", Json::array({Json::array({200, 210, 0, -2})})));
  EXPECT_TRUE(refused([](Json* json) { (*json)["engines"][0]["ready_us"] = 8; }));
  EXPECT_TRUE(refused([](Json* json) { (*json)["engines"][0]["lost_us"] = 9; }));
}

TEST(ToldHistoryTest, NoMoreIsReadThanAFrontKeeps) {
  ToldHistory told = Whole(), read;
  told.records.steps.resize(kStepsMax);
  EXPECT_TRUE(DecodeUntrusted(Encode(told), &read));
  told.records.steps.resize(kStepsMax + 1);
  EXPECT_FALSE(DecodeUntrusted(Encode(told), &read));
}

TEST(ToldHistoryTest, TheLargestAnswerIsReadByTheCommand) {
  constexpr int64_t kLate = 1'000'000'000'000'000;  // 31 years of microseconds
  ToldHistory told = Whole();
  told.now_us = kLate;
  Records* const records = &told.records;
  records->steps.assign(kStepsMax, {UINT32_MAX, kLate, kLate, kLate, 1 << 20, 1 << 20, 1 << 20,
                                    1 << 20, 1 << 20, true});
  records->loads.assign(kLoadsMax, {kLate, 1 << 20, 1 << 20, 1 << 20});
  RequestRecord request = WholeRequest();
  request.id.assign(128, 'x');
  request.arrived_us = request.begun_us = request.first_token_us = request.ended_us = kLate;
  request.pauses.assign(kPausesMax, {kLate, kLate, true, 1});
  records->requests.assign(kRequestsMax + kOpenToldMax, request);
  records->refused.assign(kRefusedMax, request);
  const std::string text = Encode(told);
  EXPECT_LT(text.size(), 16u << 20);
  ToldHistory read;
  EXPECT_TRUE(DecodeUntrusted(text, &read));
}

TEST(ToldHistoryTest, DamagedAnswersAreReadOrRefused) {
  std::mt19937_64 random(harness::Seed());
  const std::string whole = Encode(Whole());
  for (int round = 0; round < 3000; ++round) {
    std::string text = whole;
    for (uint64_t i = 0; i <= random() % 3; ++i)
      text[random() % text.size()] = static_cast<char>(random() % 128);
    ToldHistory read;
    (void)DecodeUntrusted(text.substr(0, random() % 4 == 0 ? random() % text.size() : text.size()),
                          &read);
  }
  ToldHistory read;
  for (const char* const text : {"", "7", "[]", "{}", "\xff", "{\"error\":\"x\"}"})
    EXPECT_FALSE(DecodeUntrusted(text, &read)) << text;
  EXPECT_FALSE(DecodeUntrusted(std::string(1'000'000, '['), &read));
}

}  // namespace
}  // namespace serve::history
