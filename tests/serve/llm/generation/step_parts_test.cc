// A step that is too large for an engine is cut into plans that are, together, the step.
#include "serve/llm/generation/step_parts.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/harness/seed.h"

namespace serve::llm {
namespace {

TEST(StepPartsTest, PartsAreTheStepWithinLimits) {
  std::mt19937_64 random(harness::Seed());
  const auto below = [&](size_t end) { return static_cast<size_t>(random() % end); };
  for (int round = 0; round < 1000; ++round) {
    const PartLimits limits = {static_cast<int32_t>(4 + below(20)),
                               static_cast<int32_t>(1 + below(4))};
    std::vector<BatchRequest> requests(1 + below(6));
    int32_t number = 0;
    std::vector<int32_t> tokens, draws;
    for (BatchRequest& request : requests) {
      request.tokens.resize(1 + below(30));
      for (int32_t& token : request.tokens) tokens.push_back(token = ++number);
      request.length = static_cast<int32_t>(request.tokens.size() + below(9));
      request.samples.resize(below(static_cast<size_t>(limits.requests) + 1));
      for (size_t i = 0; i < request.samples.size(); ++i) draws.push_back(number);
    }
    const std::vector<Plan> parts = PartsOf(requests, {{1, 2}}, limits);
    EXPECT_EQ(parts.front().copies.size(), 1u);
    std::vector<int32_t> got, drawn;
    for (const Plan& part : parts) {
      size_t rows = 0;
      for (const BatchRequest& request : part.requests) {
        rows += request.tokens.size();
        got.insert(got.end(), request.tokens.begin(), request.tokens.end());
        drawn.insert(drawn.end(), request.samples.size(), request.tokens.back());
      }
      EXPECT_TRUE(rows > 0 && rows <= static_cast<size_t>(limits.rows));
      EXPECT_LE(part.requests.size(), static_cast<size_t>(limits.requests));
      EXPECT_LE(SamplesOf(part), static_cast<size_t>(limits.requests));
    }
    EXPECT_EQ(got, tokens);
    EXPECT_EQ(drawn, draws);
  }
}

}  // namespace
}  // namespace serve::llm
