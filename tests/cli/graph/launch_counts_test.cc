#include "cli/graph/launch_counts.h"

#include <gtest/gtest.h>

namespace graph {
namespace {

Record Launch(uint32_t number, const std::string& kernel, uint64_t image = 1) {
  SentCall call;
  call.op = ipc::Op::Launch;
  call.kernel = kernel;
  call.image = {image};
  return {.number = number, .thread = 1, .what = call};
}

TEST(LaunchCountsTest, ATimeBelongsToItsLaunchWhicheverComesFirst) {
  LaunchCounts counts;
  counts.Add(Launch(1, "a"));
  counts.AddTime(1, 10);
  counts.AddTime(2, 20);
  counts.Add(Launch(2, "a"));
  counts.Add(Launch(3, "a"));
  counts.Add(Launch(4, "a", 2));
  counts.AddTime(4, 5);
  ASSERT_EQ(counts.by_kernel().size(), 2u);
  const Launches& first = counts.by_kernel().at({{1}, "a"});
  EXPECT_EQ(first.count, 3u);
  EXPECT_EQ(first.time_ns, 30);
  EXPECT_EQ(counts.by_kernel().at({{2}, "a"}).time_ns, 5);
}

TEST(LaunchCountsTest, OtherCallsAndWaitsCountNothing) {
  LaunchCounts counts;
  SentCall copy;
  copy.op = ipc::Op::CopyDevice;
  counts.Add({.number = 1, .thread = 1, .what = copy});
  counts.Add({.number = 2, .thread = 1, .what = HostWait{}});
  counts.AddTime(1, 10);
  EXPECT_TRUE(counts.by_kernel().empty());
}

TEST(LaunchCountsTest, LaunchesAndTimesThatStayAloneHaveABound) {
  LaunchCounts counts;
  constexpr uint32_t kMany = 200'000;
  for (uint32_t number = 1; number <= kMany; ++number) {
    counts.Add(Launch(2 * number, "a"));
    counts.AddTime(2 * number + 1, 1);
  }
  counts.AddTime(2, 7);  // its launch is long given up
  counts.AddTime(2 * kMany, 3);
  EXPECT_EQ(counts.by_kernel().at({{1}, "a"}).count, kMany);
  EXPECT_EQ(counts.by_kernel().at({{1}, "a"}).time_ns, 3);
}

}  // namespace
}  // namespace graph
