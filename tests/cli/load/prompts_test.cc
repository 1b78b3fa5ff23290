#include "cli/load/prompts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace load {
namespace {

using sim::serving::TracedRequest;

nlohmann::json Body(const TracedRequest& request, const BodyPlan& plan, uint64_t seed) {
  sim::Random random(seed);
  return nlohmann::json::parse(BodyOf(request, plan, &random));
}

TEST(PromptsTest, ABodyHasTheLengthsOfItsPlan) {
  const BodyPlan plan{.model = "m", .ids = {3, 5, 9}};
  const nlohmann::json body = Body({.prompt_tokens = 40, .answer_tokens = 6}, plan, 1);
  EXPECT_EQ(body["model"], "m");
  EXPECT_EQ(body["prompt"].size(), 40u);
  for (const nlohmann::json& id : body["prompt"]) {
    EXPECT_NE(std::find(plan.ids.begin(), plan.ids.end(), id.get<int64_t>()), plan.ids.end());
  }
  EXPECT_EQ(body["max_tokens"], 6);
  EXPECT_EQ(body["ignore_eos"], true);
  EXPECT_EQ(body["stream_options"]["include_usage"], true);
  EXPECT_NE(body, Body({.prompt_tokens = 40, .answer_tokens = 6}, plan, 2));
}

TEST(PromptsTest, WithoutTokensAWordStandsForEach) {
  const nlohmann::json body =
      Body({.prompt_tokens = 12}, {.model = "m", .chat = true, .ignore_eos = false}, 1);
  const std::string text = body["messages"][0]["content"];
  EXPECT_EQ(std::count(text.begin(), text.end(), ' '), 11);
  EXPECT_FALSE(body.contains("ignore_eos"));
}

TEST(PromptsTest, EqualHashesAreEqualTokens) {
  const BodyPlan plan{.model = "m", .ids = {1, 2, 3, 4, 5, 6, 7, 8, 9}};
  TracedRequest one{.prompt_tokens = 1'100, .hash_ids = {11, 12, 13}};
  TracedRequest two{.prompt_tokens = 1'100, .hash_ids = {11, 12, 14}};
  const auto first = Body(one, plan, 1)["prompt"].get<std::vector<int>>();
  const auto second = Body(two, plan, 2)["prompt"].get<std::vector<int>>();
  EXPECT_TRUE(std::equal(first.begin(), first.begin() + 1'024, second.begin()));
  EXPECT_FALSE(std::equal(first.begin() + 1'024, first.end(), second.begin() + 1'024));
}

}  // namespace
}  // namespace load
