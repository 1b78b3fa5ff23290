#include "ipc/iteration_times.h"

#include <gtest/gtest.h>

#include <memory>

namespace ipc {
namespace {

TEST(IterationTimesTest, BucketsAreOrderedAndNarrow) {
  for (size_t bucket = 0; bucket + 1 < kTimeBuckets; ++bucket) {
    const uint64_t begin = BucketBegin(bucket), end = BucketBegin(bucket + 1);
    ASSERT_LT(begin, end);
    EXPECT_EQ(BucketOf(begin), bucket);
    EXPECT_EQ(BucketOf(end - 1), bucket);
    EXPECT_LE((end - begin) * 8, begin < 8 ? 8 : begin);
  }
  EXPECT_EQ(BucketOf(~uint64_t{0}), kTimeBuckets - 1);
  EXPECT_GT(BucketBegin(kTimeBuckets - 1), 60'000'000u);
}

TEST(IterationTimesTest, CountsWhatEnds) {
  const std::unique_ptr<IterationTimes> times = std::make_unique<IterationTimes>();
  for (uint64_t i = 0; i < kRecentIterations + 3; ++i) CountIteration(times.get(), 1000 * i, 100);
  CountIteration(times.get(), 1'000'000, 101);
  CountWait(times.get(), 7);
  CountWait(times.get(), 5);
  CountSwitch(times.get());
  EXPECT_EQ(times->count.load(), kRecentIterations + 4);
  EXPECT_EQ(times->total_us.load(), 100 * (kRecentIterations + 3) + 101);
  EXPECT_EQ(times->times[BucketOf(100)].load(), kRecentIterations + 4) << "and of 101 us";
  EXPECT_EQ(times->recent[2].end_us.load(), 1000 * (kRecentIterations + 2));
  EXPECT_EQ(times->recent[3].end_us.load(), 1'000'000u);
  EXPECT_EQ(times->recent[3].took_us.load(), 101u);
  EXPECT_EQ(times->recent[4].end_us.load(), 4000u);
  EXPECT_EQ(times->recent[4].took_us.load(), 100u);
  EXPECT_EQ(times->waited_us.load(), 12u);
  EXPECT_EQ(times->switches.load(), 1u);
}

}  // namespace
}  // namespace ipc
