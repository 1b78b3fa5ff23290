#include "cli/load/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace load {
namespace {

constexpr size_t kCount = 200'000;

// Mean of the gaps in seconds, and their variance over the square of that.
std::pair<double, double> GapsOf(const std::vector<int64_t>& arrivals) {
  double sum = 0;
  double squares = 0;
  for (size_t i = 1; i < arrivals.size(); ++i) {
    const double gap = static_cast<double>(arrivals[i] - arrivals[i - 1]) / 1e6;
    sum += gap;
    squares += gap * gap;
  }
  const auto count = static_cast<double>(arrivals.size() - 1);
  const double mean = sum / count;
  return {mean, (squares / count - mean * mean) / (mean * mean)};
}

TEST(ArrivalsTest, GapsHaveTheMomentsOfAGammaDistribution) {
  for (const double shape : {0.2, 0.7, 1.0, 3.0, 20.0}) {
    sim::Random random(7);
    const std::vector<int64_t> arrivals = ArrivalsUs(kCount, 4, shape, &random);
    EXPECT_TRUE(std::is_sorted(arrivals.begin(), arrivals.end()));
    EXPECT_EQ(arrivals[0], 0);
    const auto [mean, variation] = GapsOf(arrivals);
    EXPECT_NEAR(mean, 0.25, 0.25 * 0.02) << shape;
    EXPECT_NEAR(variation * shape, 1, 0.05) << shape;
  }
}

TEST(ArrivalsTest, EvenGapsAndAllAtOnce) {
  sim::Random random(1);
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(ArrivalsUs(3, 10, infinite, &random), (std::vector<int64_t>{0, 100'000, 200'000}));
  EXPECT_EQ(ArrivalsUs(3, infinite, 1, &random), (std::vector<int64_t>{0, 0, 0}));
}

}  // namespace
}  // namespace load
