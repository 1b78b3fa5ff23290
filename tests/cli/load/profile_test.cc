#include "cli/load/profile.h"

#include <gtest/gtest.h>

#include <vector>

#include "cli/sim/serving/costs.h"

namespace load {
namespace {

Answer At(std::vector<int64_t> tokens_us) {
  Answer answer;
  answer.status = 200;
  answer.sent_us = 0;
  answer.tokens_us = std::move(tokens_us);
  answer.end_us = answer.tokens_us.empty() ? 0 : answer.tokens_us.back();
  return answer;
}

TEST(ProfileTest, PointsFitTheContextAndTheConnections) {
  const auto sizes = [](int64_t context, int64_t at_once, ProfilePoint::Kind kind) {
    std::vector<int64_t> found;
    for (const ProfilePoint& point : PointsOf(context, at_once)) {
      if (point.kind == kind) found.push_back(point.size);
      if (context != 0) EXPECT_LE(point.prompt_tokens() + 1, context);
    }
    return found;
  };
  using Sizes = std::vector<int64_t>;
  EXPECT_EQ(sizes(129, 8, ProfilePoint::kPrompt), (Sizes{16, 32, 64, 128}));
  EXPECT_EQ(sizes(128, 8, ProfilePoint::kPrompt), (Sizes{16, 32, 64}));
  EXPECT_EQ(sizes(0, 1, ProfilePoint::kPrompt).back(), 1024);
  EXPECT_EQ(sizes(1 << 20, 5, ProfilePoint::kPrompt).back(), 4096);
  EXPECT_EQ(sizes(2048, 5, ProfilePoint::kStep), (Sizes{1, 2, 4}));
  EXPECT_EQ(sizes(2048, 4096, ProfilePoint::kStep).back(), 64);
}

TEST(ProfileTest, APromptsTimeIsTheMedianToItsToken) {
  const ProfilePoint point = {ProfilePoint::kPrompt, 16};
  EXPECT_DOUBLE_EQ(MsOf(point, {{At({9000})}, {At({4000})}, {At({5000})}}), 5);
  Answer failed = At({});
  failed.failure = "it was refused";
  EXPECT_LT(MsOf(point, {{At({9000})}, {failed}}), 0);
}

TEST(ProfileTest, AStepsTimeIsOfTokensWhileAllGenerate) {
  const ProfilePoint point = {ProfilePoint::kStep, 2};
  // The second begins at 10 ms, and the first ends at 30 ms: the gaps between are of 10 ms.
  EXPECT_DOUBLE_EQ(MsOf(point, {{At({0, 2000, 4000, 10'000, 20'000, 30'000}),
                                 At({10'000, 20'000, 30'000, 31'000, 32'000, 33'000})}}),
                   10);
  EXPECT_LT(MsOf(point, {{At({0, 1000}), At({2000, 3000})}}), 0) << "never at the same time";
}

TEST(ProfileTest, TheSimulatorReadsTheTable) {
  const std::string text = TableText("small", {{{ProfilePoint::kPrompt, 16}, 3.5},
                                               {{ProfilePoint::kPrompt, 32}, 7.25},
                                               {{ProfilePoint::kStep, 1}, 1.5},
                                               {{ProfilePoint::kStep, 2}, 2}});
  const absl::StatusOr<sim::serving::Costs> costs = sim::serving::Costs::Parse(text, "table");
  ASSERT_TRUE(costs.ok()) << costs.status();
  scheduler::batching::iteration::Step step;
  step.rows = {{1, 0, 0, 16, 1, 0, {}}};
  EXPECT_DOUBLE_EQ(costs->StepMs(step), 3.5);
}

}  // namespace
}  // namespace load
