// What of the past is equal, against one comparison after the other.
#include "shim/iterations/history.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "tests/harness/seed.h"

namespace shim::iterations {
namespace {

uint64_t EqualBefore(const History& history, uint64_t end, uint64_t period, uint64_t count) {
  uint64_t equal = 0;
  while (equal < count && end - equal > period &&
         history.identity(end - 1 - equal) == history.identity(end - 1 - equal - period)) {
    ++equal;
  }
  return equal;
}

TEST(HistoryTest, HowFarTwoStretchesAreEqual) {
  std::mt19937_64 random(harness::Seed());
  for (int round = 0; round < 200; ++round) {
    History history;
    const uint64_t period = 1 + random() % 100;
    const uint64_t differs = random() % 2'000;
    for (uint64_t i = 0; i < 2'000; ++i) {
      Op op;
      op.identity = static_cast<uint32_t>(i == differs ? 1'000 : i % period);
      history.Push(op);
    }
    for (int query = 0; query < 50; ++query) {
      const uint64_t asked = random() % 3 == 0 ? 1 + random() % 200 : period;
      const uint64_t end = asked + random() % (2'001 - asked), count = random() % 2'000;
      ASSERT_EQ(history.EqualBefore(end, asked, count), EqualBefore(history, end, asked, count))
          << "round " << round << " end " << end << " period " << asked << " count " << count;
    }
  }
}

}  // namespace
}  // namespace shim::iterations
