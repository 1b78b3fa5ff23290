#include "shim/arena/blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/harness/seed.h"
#include "tests/shim/arena/model.h"
#include "tests/shim/arena/random.h"

namespace shim_arena_test {
namespace {

using shim::arena::Blocks;
using shim::arena::kAlignment;
using shim::arena::Range;
using shim::arena::RoundUp;

constexpr uint64_t kMiB = 1 << 20;

// What must be finished before memory is used again goes along when blocks are cut and merged.
TEST(Blocks, EveryPartOfAFreeBlockRemembersItsFence) {
  Blocks blocks;
  blocks.AddRange({kMiB, kMiB}, {});
  Blocks::Taken first, second, third;
  ASSERT_TRUE(blocks.Take(kMiB / 2, &first));
  ASSERT_TRUE(blocks.Take(kMiB / 2, &second));
  Range range;
  blocks.Give(first.index, {4, 1}, &range);
  blocks.Give(second.index, {7, 2}, &range);
  ASSERT_TRUE(blocks.Take(kMiB / 4, &first));
  EXPECT_EQ(first.stamp, (shim::arena::Stamp{7, shim::arena::kAnyStream})) << "of both";
  ASSERT_TRUE(blocks.Take(kMiB / 4, &second));
  EXPECT_EQ(second.stamp, first.stamp) << "what is left of a block that was cut";
  blocks.Give(second.index, {9, 3}, &range);
  ASSERT_TRUE(blocks.Take(3 * kMiB / 4, &third));
  EXPECT_EQ(third.stamp.epoch, 9u);
}

TEST(Blocks, InCanonicalOrderTheLowestAddressComesFirst) {
  Blocks blocks;
  blocks.AddRange({kMiB, kMiB}, {});
  std::vector<Blocks::Taken> taken(6);
  for (Blocks::Taken& one : taken) ASSERT_TRUE(blocks.Take(kMiB / 8, &one));
  Range range;
  for (const size_t i : {0, 4, 2}) blocks.Give(taken[i].index, {}, &range);
  blocks.Canonicalize();
  for (const size_t i : {0, 2}) {
    Blocks::Taken again;
    ASSERT_TRUE(blocks.Take(kMiB / 8, &again));
    EXPECT_EQ(again.address, taken[i].address);
  }
}

TEST(Blocks, TakesFromTheFrontAndMergesBack) {
  Blocks blocks;
  blocks.AddRange({kMiB, kMiB}, {});
  Blocks::Taken first, second;
  ASSERT_TRUE(blocks.Take(1, &first));
  ASSERT_TRUE(blocks.Take(kAlignment + 1, &second));
  EXPECT_EQ(first.address, kMiB);
  EXPECT_EQ(first.bytes, kAlignment);
  EXPECT_TRUE(first.opened);
  EXPECT_EQ(second.address, kMiB + kAlignment);
  EXPECT_EQ(second.bytes, 2 * kAlignment);
  EXPECT_FALSE(second.opened);
  Range range;
  EXPECT_FALSE(blocks.Give(first.index, {}, &range));
  EXPECT_TRUE(blocks.Give(second.index, {}, &range));
  EXPECT_EQ(range, (Range{kMiB, kMiB}));
  Blocks::Taken all;
  EXPECT_TRUE(blocks.Take(kMiB, &all));
  EXPECT_FALSE(blocks.Take(1, &first));
}

TEST(Blocks, FindsABlockOfExactlyTheSizeAsked) {
  Blocks blocks;
  blocks.AddRange({0, 1001 * kAlignment}, {});
  Blocks::Taken taken;
  EXPECT_TRUE(blocks.Take(1001 * kAlignment, &taken));
}

TEST(Blocks, RemembersTheStampOfWhatWasThere) {
  Blocks blocks;
  blocks.AddRange({0, kMiB}, {});
  Blocks::Taken taken;
  ASSERT_TRUE(blocks.Take(4096, &taken));
  EXPECT_EQ(taken.stamp.epoch, 0u);
  Range range;
  blocks.Give(taken.index, {7, 3}, &range);
  ASSERT_TRUE(blocks.Take(4096, &taken));
  EXPECT_EQ(taken.stamp, (shim::arena::Stamp{7, 3}));
}

// No overlap, alignment, exact accounts, and nothing lost: when all is free every range is whole.
TEST(Blocks, RandomEventsAgreeWithAModel) {
  const uint64_t seed = harness::Seed();
  Random random(seed);
  Blocks blocks;
  Live<Blocks::Index> live;
  std::vector<Range> ranges;
  uint64_t total = 0;
  for (uint64_t i = 0; i < 8; ++i) {
    ranges.push_back({i * 64 * kMiB, random.In(1, 8192) * kAlignment});
    blocks.AddRange(ranges.back(), {});
    total += ranges.back().bytes;
  }
  for (int event = 0; event < 300'000; ++event) {
    if (random.OneIn(20'000)) blocks.Canonicalize();
    if (live.empty() || random.In(0, 99) < 52) {
      Blocks::Taken taken;
      const uint64_t bytes = random.Size(21);
      if (!blocks.Take(bytes, &taken)) continue;
      ASSERT_EQ(taken.bytes, RoundUp(bytes, kAlignment));
      ASSERT_NO_FATAL_FAILURE(live.Add(taken.address, taken.bytes, taken.index));
      const bool inside = std::any_of(ranges.begin(), ranges.end(), [&](const Range& range) {
        return range.base <= taken.address &&
               taken.address + taken.bytes <= range.base + range.bytes;
      });
      ASSERT_TRUE(inside) << "seed " << seed;
    } else {
      const uint64_t address = live.At(random.In(0, live.size() - 1));
      Range range;
      if (blocks.Give(live.Remove(address), {}, &range)) {
        ASSERT_FALSE(live.Touches(range));
      }
    }
    ASSERT_EQ(blocks.live_bytes(), live.bytes());
    ASSERT_EQ(blocks.total_bytes(), total);
  }
  while (!live.empty()) {
    Range range;
    blocks.Give(live.Remove(live.At(0)), {}, &range);
  }
  for (const Range& range : ranges) {
    shim::arena::Stamp stamp;
    blocks.RemoveRange(range.base, &stamp);
  }
  EXPECT_EQ(blocks.total_bytes(), 0u);
}

}  // namespace
}  // namespace shim_arena_test
