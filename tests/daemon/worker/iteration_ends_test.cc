// How long iterations take on a recorded device that is behind, or not.
#include "daemon/worker/iteration_ends.h"

#include <gtest/gtest.h>

#include <memory>

#include "ipc/futex.h"
#include "tests/daemon/worker/recording_driver.h"

namespace worker {
namespace {

class IterationEndsTest : public testing::Test {
 protected:
  // One that the device reaches at `device_ms` of its own clock.
  void Boundary(int64_t began_us, int64_t ended_us, uint64_t held_us, double device_ms) {
    recording_.device_ms = device_ms;
    ends_.OnBoundary(stream_, {base_us_ + began_us, base_us_ + ended_us, held_us});
    // It is not there before Finish().
    for (const std::pair<const CUevent, double>& event : recording_.reached_ms) {
      if (event.second == device_ms) recording_.unfinished_events.insert(event.first);
    }
  }
  void Finish() {
    recording_.unfinished_events.clear();
    ends_.CountEnded();
  }
  uint64_t Took(size_t number) const { return times_->recent[number].took_us.load(); }

  Recording& recording_ = FreshRecording();
  Environment environment_ = RecordingEnvironment();
  const CUstream stream_ = reinterpret_cast<CUstream>(uintptr_t{77});
  const int64_t base_us_ = ipc::MonotonicNs() / 1000 - 100'000'000;
  std::unique_ptr<ipc::IterationTimes> times_ = std::make_unique<ipc::IterationTimes>();
  IterationEnds ends_{environment_, times_.get()};
};

TEST_F(IterationEndsTest, AProgramThatRunsAheadTakesAsLongAsItsDevice) {
  for (int i = 1; i <= 20; ++i) Boundary((i - 1) * 1000, i * 1000, 1000, i * 100.0);
  EXPECT_EQ(times_->count.load(), 0u) << "the device has ended none";
  Finish();
  ASSERT_EQ(times_->count.load(), 20u);
  for (size_t i = 1; i < 20; ++i) EXPECT_NEAR(Took(i), 100'000, 2) << i;
}

TEST_F(IterationEndsTest, WhoWaitsForTheDeviceTakesAsLongAsTheProgram) {
  for (int i = 1; i <= 20; ++i) {
    Boundary((i - 1) * 5000, i * 5000, 5000, i * 5.0);
    Finish();
  }
  for (size_t i = 0; i < 20; ++i) EXPECT_NEAR(Took(i), 5000, 2) << i;
}

TEST_F(IterationEndsTest, WaitsForTheLaneAreLeftOut) {
  Boundary(0, 1000, 1000, 1);
  Boundary(1000, 2000, 1000, 50);       // the device ends it 48 ms later
  Boundary(80'000, 81'000, 1000, 100);  // it waits until 80 ms
  Finish();
  EXPECT_NEAR(Took(1), 49'000, 2);
  EXPECT_NEAR(Took(2), 20'000, 2);
}

// Clocks drift, and a device's may be set back: no iteration ends in the future or before it left.
TEST_F(IterationEndsTest, AnIterationEndsBetweenTheRingAndNow) {
  Boundary(0, 1000, 1000, 1);
  Boundary(1000, 2000, 1000, 1e9);
  Finish();
  EXPECT_LE(times_->recent[1].end_us.load(), static_cast<uint64_t>(ipc::MonotonicNs() / 1000));
  Boundary(2000, 200'000'000, 1000, 1e9 + 1);
  Finish();
  EXPECT_EQ(times_->recent[2].end_us.load(), static_cast<uint64_t>(base_us_ + 200'000'000));
}

TEST_F(IterationEndsTest, WithoutWorkItEndsWhereItLeavesTheRing) {
  ends_.OnBoundary(nullptr, {base_us_, base_us_ + 700, 700});
  ends_.CountEnded();
  EXPECT_EQ(Took(0), 700u);
}

TEST_F(IterationEndsTest, WhatIsFarAheadIsCountedAllTheSame) {
  for (int i = 1; i <= 1000; ++i) Boundary((i - 1) * 1000, i * 1000, 1000, i * 10.0);
  Finish();
  ends_.Clear();
  EXPECT_EQ(times_->count.load(), 1000u);
}

}  // namespace
}  // namespace worker
