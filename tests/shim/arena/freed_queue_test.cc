#include "shim/arena/freed_queue.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/harness/seed.h"
#include "tests/shim/arena/random.h"

namespace shim_arena_test {
namespace {

using shim::arena::FreedQueue;

TEST(FreedQueue, NothingWaitsUntilToldTo) {
  FreedQueue<int> queue;
  EXPECT_FALSE(queue.Add(1, 1));
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(queue.TakeOldest().has_value());
}

TEST(FreedQueue, ABlockOfMoreBytesDoesNotWaitAndMovesNoOther) {
  FreedQueue<int> queue;
  queue.SetBytesMax(10);
  EXPECT_TRUE(queue.Add(1, 10));
  EXPECT_FALSE(queue.Add(2, 11));
  EXPECT_FALSE(queue.TakeOver().has_value());
  EXPECT_EQ(queue.bytes(), 10u);
}

// Beside a plain list, for random blocks and limits that change.
TEST(FreedQueue, TheOldestLeavesOnceTooManyBytesWait) {
  const uint64_t seed = harness::Seed();
  Random random(seed);
  FreedQueue<uint64_t> queue;
  std::vector<std::pair<uint64_t, uint64_t>> waiting;  // block, bytes
  uint64_t limit = 0, bytes = 0;
  for (uint64_t block = 0; block < 20'000; ++block) {
    if (random.OneIn(50)) queue.SetBytesMax(limit = random.In(0, 1000));
    const uint64_t size = random.In(1, 300);
    ASSERT_EQ(queue.Add(block, size), size <= limit) << "seed " << seed;
    if (size <= limit) {
      waiting.push_back({block, size});
      bytes += size;
    }
    while (bytes > limit || (!waiting.empty() && random.OneIn(20))) {
      const std::optional<uint64_t> left = bytes > limit ? queue.TakeOver() : queue.TakeOldest();
      ASSERT_EQ(left, waiting.front().first) << "seed " << seed;
      bytes -= waiting.front().second;
      waiting.erase(waiting.begin());
    }
    ASSERT_FALSE(queue.TakeOver().has_value()) << "seed " << seed;
    ASSERT_EQ(queue.bytes(), bytes);
    ASSERT_EQ(queue.empty(), waiting.empty());
  }
}

}  // namespace
}  // namespace shim_arena_test
