#include "cli/sim/statistics.h"

#include <gtest/gtest.h>

namespace sim {
namespace {

TEST(StatisticsTest, NearestRank) {
  std::vector<double> values;
  EXPECT_EQ(Percentile(&values, 95), 0);
  for (int i = 100; i >= 1; --i) values.push_back(i);
  EXPECT_EQ(Percentile(&values, 95), 95);
  EXPECT_EQ(Percentile(&values, 50), 50);
  EXPECT_EQ(Percentile(&values, 100), 100);
  EXPECT_EQ(Percentile(&values, 0), 1);
  values = {7};
  EXPECT_EQ(Percentile(&values, 95), 7);
}

JobOutcome Done(double arrival_s, double first_s, double end_s, int64_t iterations) {
  JobOutcome job;
  job.job.iterations = iterations;
  job.job.iteration_ms = 1000;
  job.arrival_us = static_cast<int64_t>(arrival_s * 1e6);
  job.first_run_us = static_cast<int64_t>(first_s * 1e6);
  job.end_us = static_cast<int64_t>(end_s * 1e6);
  return job;
}

TEST(StatisticsTest, ASummaryOfTwo) {
  Outcome outcome;
  outcome.policy = "p";
  outcome.jobs = {Done(1, 1, 11, 10), Done(2, 11, 16, 5)};
  outcome.begin_us = 1'000'000;
  outcome.end_us = 16'000'000;
  outcome.busy_us = 7'500'000;
  outcome.jobs.push_back({});  // never came to its end
  const Summary summary = Summarise(outcome);
  EXPECT_EQ(summary.jobs, 2);
  EXPECT_EQ(summary.rejected, 1);
  EXPECT_EQ(summary.makespan_s, 15);
  EXPECT_EQ(summary.queueing_s.mean, 4.5);
  EXPECT_EQ(summary.jct_s.mean, 12);
  EXPECT_EQ(summary.jct_s.max, 14);
  EXPECT_DOUBLE_EQ(summary.slowdown.max, 2.8);
  EXPECT_EQ(summary.utilisation, 0.5);
}

}  // namespace
}  // namespace sim
