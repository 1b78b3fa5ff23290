#include "tests/shim/bench/report.h"

#include <gtest/gtest.h>

namespace bench {
namespace {

int ExitCode(std::vector<double> samples, double bar, bool higher_is_better = false) {
  Report report;
  report.Add({"figure", "us", std::move(samples), bar, higher_is_better});
  return report.exit_code();
}

TEST(BenchReportTest, TheMedianDecides) {
  EXPECT_EQ(ExitCode({4, 4.1, 4, 4.2, 9}, 5), 0);
  EXPECT_EQ(ExitCode({6, 6.1, 6, 6.2, 6}, 5), 1);
  EXPECT_EQ(ExitCode({6, 6.1, 6, 6.2, 6}, 5, true), 0);
}

TEST(BenchReportTest, OneGoodRoundDoesNotExcuseAMiss) {
  EXPECT_EQ(ExitCode({6, 6, 6, 6, 4, 6, 6}, 5), 1);
}

TEST(BenchReportTest, HalvesThatDifferAreTooNoisy) {
  EXPECT_EQ(ExitCode({4, 8, 4, 8, 4, 8}, 5), 2);
  EXPECT_EQ(ExitCode({1, 2, 1, 2}, 5), 0) << "all of them meet the bar";
}

TEST(BenchReportTest, WhatIsNotMeasuredIsNoSuccess) {
  EXPECT_EQ(ExitCode({}, 5), 2);
  EXPECT_EQ(ExitCode({}, 0), 2);
  EXPECT_EQ(ExitCode({1}, 0), 0);
}

}  // namespace
}  // namespace bench
