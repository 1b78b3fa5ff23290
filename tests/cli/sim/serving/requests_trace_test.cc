#include "cli/sim/serving/requests_trace.h"

#include <gtest/gtest.h>

namespace sim::serving {
namespace {

TEST(RequestsTraceTest, ReadsAzure) {
  const absl::StatusOr<std::vector<TracedRequest>> requests = ParseRequests(
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
      "2023-11-16 18:17:04.5000000,10,0\r\n2023-11-16 18:17:03.9799600,374,44\r\n",
      "t");
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_EQ(requests->size(), 2u);
  EXPECT_EQ((*requests)[0].prompt_tokens, 374);
  EXPECT_EQ((*requests)[0].arrival_us, 0);
  EXPECT_EQ((*requests)[1].arrival_us, 520'040);
  EXPECT_EQ((*requests)[1].answer_tokens, 1);
}

TEST(RequestsTraceTest, ReadsMooncake) {
  const absl::StatusOr<std::vector<TracedRequest>> requests = ParseRequests(
      R"({"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]})"
      "\n"
      R"({"timestamp": 30535, "input_length": 6472, "output_length": 26, "hash_ids": []})",
      "t");
  ASSERT_TRUE(requests.ok()) << requests.status();
  EXPECT_EQ((*requests)[0].hash_ids, (std::vector<int64_t>{46, 47}));
  EXPECT_EQ((*requests)[1].arrival_us, 3'053'000);
}

TEST(RequestsTraceTest, RefusesWhatIsNoRequest) {
  for (const char* const line :
       {"", "2023-11-16 18:17:03,1", "2023-13-16 18:17:03,1,1", "2023-11-16 18:17:03,0,1",
        "2023-11-16 18:17:03,1048576,1", "{", R"({"timestamp": 1, "input_length": "2"})",
        R"({"timestamp": 1, "input_length": 1e300, "output_length": 1})",
        R"({"timestamp": 1, "input_length": 1, "output_length": 1, "hash_ids": [0.5]})"}) {
    EXPECT_FALSE(ParseRequests(line, "t").ok()) << line;
  }
  EXPECT_EQ(ParseRequests("2023-11-16 18:17:03,1,1\nx\n", "t").status().message().substr(0, 5),
            "t:2: ");
}

TEST(RequestsTraceTest, GeneratedRequestsComeAtTheRateAndKeepToTheLengths) {
  PoissonPlan plan;
  plan.requests = 20'000;
  plan.per_s = 4;
  const std::vector<TracedRequest> requests = GenerateRequests(plan);
  EXPECT_NEAR(static_cast<double>(requests.back().arrival_us) / 1e6, 5'000, 200);
  double prompts = 0;
  for (const TracedRequest& request : requests) {
    ASSERT_TRUE(request.prompt_tokens >= 32 && request.prompt_tokens <= 512);
    ASSERT_TRUE(request.answer_tokens >= 1 && request.answer_tokens <= 128);
    prompts += static_cast<double>(request.prompt_tokens);
  }
  EXPECT_NEAR(prompts / 20'000, 272, 6);
}

}  // namespace
}  // namespace sim::serving
