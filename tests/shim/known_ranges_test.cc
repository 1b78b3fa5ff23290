// Where memory was stays known until other memory comes there.
#include "shim/known_ranges.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/harness/seed.h"

namespace shim {
namespace {

using Range = KnownRanges::Range;

TEST(KnownRangesTest, TheSameAgainIsNoChange) {
  KnownRanges known;
  EXPECT_TRUE(known.Add({100, 50}));
  EXPECT_FALSE(known.Add({100, 50}));
  EXPECT_TRUE(known.Add({100, 60}));
  EXPECT_TRUE(known.Add({100, 50}));
  EXPECT_TRUE(known.Add({90, 60}));
}

TEST(KnownRangesTest, WhatOverlapsGoes) {
  KnownRanges known;
  for (const Range& range : {Range{0, 10}, Range{10, 10}, Range{20, 10}}) known.Add(range);
  known.Add({15, 10});
  EXPECT_EQ(known.Find(9), (Range{0, 10}));
  EXPECT_EQ(known.Find(10), std::nullopt);
  EXPECT_EQ(known.Find(15), (Range{15, 10}));
  EXPECT_EQ(known.Find(24), (Range{15, 10}));
  EXPECT_EQ(known.Find(25), std::nullopt);
}

TEST(KnownRangesTest, EachAddressHasTheRangeThatCameLast) {
  std::mt19937_64 random(harness::Seed());
  for (int round = 0; round < 100; ++round) {
    KnownRanges known;
    std::map<uint64_t, Range> last;  // by address
    for (int step = 0; step < 40; ++step) {
      const Range range{random() % 40, 1 + random() % 12};
      const bool same = last.contains(range.begin) && last[range.begin] == range;
      EXPECT_EQ(known.Add(range), !same);
      std::erase_if(last, [&range](const auto& entry) {
        return entry.second.begin < range.end() && range.begin < entry.second.end();
      });
      for (uint64_t at = range.begin; at < range.end(); ++at) last[at] = range;
      for (uint64_t at = 0; at < 60; ++at) {
        const std::optional<Range> found = known.Find(at);
        ASSERT_EQ(found.has_value(), last.contains(at));
        if (found.has_value()) {
          ASSERT_EQ(*found, last[at]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace shim
