#include "serve/metrics/latency_goals.h"

#include <gtest/gtest.h>

namespace serve::metrics {
namespace {

TEST(LatencyGoalsTest, GoalsAreReadOrRefused) {
  const absl::StatusOr<LatencyGoals> goals = ParseLatencyGoals("ttft:500,tpot:100");
  ASSERT_TRUE(goals.ok());
  EXPECT_EQ(*goals, (LatencyGoals{{"tpot", 100}, {"ttft", 500}}));
  EXPECT_TRUE(ParseLatencyGoals("")->empty());
  for (const char* const bad : {"ttft", "ttft:", "ttft:-1", "itl:5", "ttft:1:2", "ttft:x"}) {
    const absl::StatusOr<LatencyGoals> refused = ParseLatencyGoals(bad);
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_EQ(refused.status().message(),
              "'" + std::string(bad) + "' is no goal: ttft:MS, tpot:MS and e2el:MS are");
  }
}

TEST(LatencyGoalsTest, TimesOfAnAnswer) {
  EXPECT_EQ(TimesOfAnswer(1000, 3000, 9000, 9500, 4),
            (LatencyTimes{{"ttft", 2}, {"tpot", 2}, {"e2el", 8.5}}));
  // One token has no time between tokens, whatever is asked of it.
  const LatencyTimes one = TimesOfAnswer(0, 4000, 4000, 4000, 1);
  EXPECT_EQ(one, (LatencyTimes{{"ttft", 4}, {"e2el", 4}}));
  EXPECT_TRUE(MeetsGoals(one, {{"tpot", 0.001}}));
  EXPECT_TRUE(MeetsGoals(one, {{"ttft", 4}}));
  EXPECT_FALSE(MeetsGoals(one, {{"ttft", 4}, {"e2el", 3.9}}));
}

TEST(LatencyGoalsTest, RefusalsMeetNoGoal) {
  Registry registry;
  Attainment attainment(&registry, {{"model_name", "m"}}, {{"ttft", 5}});
  attainment.CountAnswer({{"ttft", 5}});
  attainment.CountAnswer({{"ttft", 6}});
  attainment.CountAnswer({{"ttft", 1}});
  attainment.CountMiss();
  const std::string page = registry.Text();
  EXPECT_NE(page.find("laneway_serve_slo_answers{model_name=\"m\"} 4\n"), std::string::npos)
      << page;
  EXPECT_NE(page.find("laneway_serve_slo_answers_met{model_name=\"m\"} 2\n"), std::string::npos);
  EXPECT_NE(page.find("laneway_serve_slo_attainment_ratio{model_name=\"m\"} 0.5\n"),
            std::string::npos);
}

TEST(LatencyGoalsTest, WithoutGoalsNothingIsTold) {
  Registry registry;
  Attainment attainment(&registry, {}, {});
  attainment.CountAnswer({{"ttft", 5}});
  attainment.CountMiss();
  EXPECT_EQ(registry.Text(), "");
}

}  // namespace
}  // namespace serve::metrics
