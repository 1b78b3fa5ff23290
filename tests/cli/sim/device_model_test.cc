#include "cli/sim/device_model.h"

#include <gtest/gtest.h>

#include <numeric>

namespace sim {
namespace {

double Throughput(size_t lanes, const Load& load) {
  double sum = 0;
  for (const Speed& speed : SpeedsOf(std::vector<Load>(lanes, load))) sum += speed.rate;
  return sum;
}

TEST(DeviceModelTest, AloneNothingStretches) {
  for (const double busy : {0.01, 0.4, 1.0}) {
    EXPECT_EQ(SpeedsOf({{busy, 0.5}})[0].rate, 1);
    EXPECT_EQ(SpeedsOf({{busy, 0.5}})[0].use, busy);
  }
}

TEST(DeviceModelTest, WhoComputesAlwaysGetsAnEqualShare) {
  for (size_t lanes = 2; lanes < 20; ++lanes) {
    for (const Speed& speed : SpeedsOf(std::vector<Load>(lanes, {1, 0}))) {
      EXPECT_NEAR(speed.rate, 1.0 / static_cast<double>(lanes), 1e-6);
    }
  }
}

TEST(DeviceModelTest, GapsAreFilledUpToTheWholeDevice) {
  double last = 1;
  for (size_t lanes = 2; lanes < 30; ++lanes) {
    const double now = Throughput(lanes, {0.4, 0});
    EXPECT_GT(now, last);
    EXPECT_LE(now, 1 / 0.4 + 1e-9);
    last = now;
  }
  EXPECT_GT(last, 2.4);
}

TEST(DeviceModelTest, SalusFigure210) {  // what the two busy shares are calibrated by
  EXPECT_NEAR(Throughput(4, {0.93, 0}), 1.07, 0.01);
  EXPECT_NEAR(Throughput(8, {0.40, 0}), 2.38, 0.08);
}

TEST(DeviceModelTest, InterferenceCostsThroughput) {
  EXPECT_LT(Throughput(4, {1, 0.3}), 0.6);
  EXPECT_GT(Throughput(4, {0.3, 0.3}), 1);
  double use = 0;
  for (const Speed& speed : SpeedsOf({{1, 0.3}, {0.5, 0.1}, {0.2, 0}})) use += speed.use;
  EXPECT_LE(use, 1 + 1e-9);
}

TEST(DeviceModelTest, TargetsAreReachedOnTime) {
  SharedDevice device;
  device.Start({1, {1, 0}, 1000, 0, 10, {}});
  EXPECT_EQ(device.NextUs(), 10'000);
  device.Advance(5'000);
  EXPECT_DOUBLE_EQ(device.Find(1)->done, 5);
  device.Start({2, {1, 0}, 1000, 0, 1, {}});
  EXPECT_EQ(device.NextUs(), 7'000) << "two share: twice the time";
  device.Advance(7'000);
  EXPECT_EQ(device.Reached(), 2u);
  EXPECT_EQ(device.Stop(2), 1);
  EXPECT_EQ(device.NextUs(), 11'000);
  device.Advance(11'000);
  EXPECT_EQ(device.Reached(), 1u);
  EXPECT_EQ(device.Stop(1), 10);
  EXPECT_EQ(device.NextUs(), SharedDevice::kNever);
  EXPECT_NEAR(device.busy_us(), 11'000, 1e-6);
  EXPECT_NEAR(device.computing_us(), 11'000, 1e-6);
}

}  // namespace
}  // namespace sim
