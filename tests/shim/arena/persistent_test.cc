#include "shim/arena/persistent.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "shim/arena/addresses.h"
#include "tests/harness/seed.h"
#include "tests/shim/arena/model.h"
#include "tests/shim/arena/random.h"

namespace shim_arena_test {
namespace {

using shim::arena::Addresses;
using shim::arena::kAlignment;
using shim::arena::kRangeBytes;
using shim::arena::Persistent;
using shim::arena::Range;
using shim::arena::RoundUp;

constexpr uint64_t kMiB = 1 << 20, kGiB = 1 << 30;

// The allocator with a worker that maps whatever is asked.
struct Mapped {
  Persistent persistent;
  Addresses addresses{uint64_t{1} << 44, 64 * kGiB};
  std::map<uint64_t, uint64_t> ranges;
  int maps = 0, unmaps = 0;

  Persistent::Block Take(uint64_t bytes, uint32_t owner = Persistent::kProgram,
                         int32_t slot = shim::arena::kAnyStream, bool short_lived = false) {
    const Persistent::Request request{bytes, owner, slot, short_lived};
    Persistent::Block block;
    while (!persistent.Take(request, &block)) {
      const uint64_t range = Persistent::RangeBytesFor(bytes);
      const uint64_t base = addresses.Take(range).value();
      EXPECT_TRUE(ranges.emplace(base, range).second);
      ++maps;
      persistent.AddRange({base, range});
    }
    return block;
  }
  void Give(const Persistent::Block& block) {
    std::vector<Range> unmap;
    persistent.Give(block, {1, shim::arena::kAnyStream}, &unmap);
    Unmap(unmap);
  }
  void Unmap(const std::vector<Range>& unmap) {
    for (const Range& range : unmap) {
      EXPECT_EQ(ranges.at(range.base), range.bytes);
      ranges.erase(range.base);
      addresses.Give(range);
      ++unmaps;
    }
  }
  uint64_t MappedBytes() const {
    uint64_t bytes = 0;
    for (const std::pair<const uint64_t, uint64_t>& range : ranges) bytes += range.second;
    return bytes;
  }
};

TEST(Persistent, ALargeBlockOwnsItsRange) {
  Mapped memory;
  const Persistent::Block block = memory.Take(5 * kMiB);
  EXPECT_EQ(block.address % kRangeBytes, 0u);
  EXPECT_EQ(memory.MappedBytes(), 6 * kMiB);
  EXPECT_EQ(memory.persistent.live_bytes(), 5 * kMiB);
  memory.Give(block);
  EXPECT_EQ(memory.persistent.cached_bytes(), 6 * kMiB);
}

TEST(Persistent, APairInALoopIsMappedOnce) {
  for (const uint64_t bytes : {uint64_t{512}, kMiB, 3 * kMiB, 20 * kMiB}) {
    Mapped memory;
    for (int i = 0; i < 100; ++i) memory.Give(memory.Take(bytes));
    EXPECT_EQ(memory.maps, 1) << bytes;
    EXPECT_EQ(memory.unmaps, 0) << bytes;
  }
}

// What is larger than the cache is given back at once; who needs it again at once keeps it then.
TEST(Persistent, AVeryLargePairInALoopIsMappedTwice) {
  Mapped memory;
  memory.Give(memory.Take(kGiB));
  EXPECT_EQ(memory.MappedBytes(), 0u);
  for (int i = 0; i < 100; ++i) memory.Give(memory.Take(kGiB));
  EXPECT_EQ(memory.maps, 2);
  EXPECT_EQ(memory.unmaps, 1);
  EXPECT_EQ(memory.persistent.cached_bytes(), kGiB);
  std::vector<Range> unmap;
  memory.persistent.Trim(&unmap);
  memory.Unmap(unmap);
  EXPECT_EQ(memory.MappedBytes(), 0u);
}

TEST(Persistent, ShortLivedBlocksPinNoRangeAmongWeights) {
  Mapped memory;
  const Persistent::Block weight = memory.Take(4096);
  const Persistent::Block activation =
      memory.Take(4096, Persistent::kProgram, shim::arena::kAnyStream, true);
  EXPECT_NE(weight.address / kRangeBytes, activation.address / kRangeBytes);
}

TEST(Persistent, APoolHoldsItsMemoryUntilItReleases) {
  Mapped memory;
  const Persistent::Block block = memory.Take(4 * kMiB, 1, 0);
  EXPECT_EQ(memory.persistent.UsageOf(1).used, 4 * kMiB);
  EXPECT_EQ(memory.persistent.UsageOf(1).reserved, 4 * kMiB);
  memory.Give(block);
  EXPECT_EQ(memory.persistent.UsageOf(1).used, 0u);
  EXPECT_EQ(memory.persistent.UsageOf(1).reserved, 4 * kMiB);
  EXPECT_EQ(memory.persistent.cached_bytes(), 0u);
  std::vector<Range> unmap;
  memory.persistent.SetThreshold(1, 4 * kMiB);
  memory.persistent.OnSynchronized(&unmap);
  EXPECT_EQ(memory.persistent.UsageOf(1).reserved, 4 * kMiB);
  memory.persistent.SetThreshold(1, 0);
  memory.persistent.OnSynchronized(&unmap);
  EXPECT_EQ(memory.persistent.UsageOf(1).reserved, 0u);
  EXPECT_EQ(memory.persistent.UsageOf(1).reserved_high, 4 * kMiB);
  EXPECT_EQ(memory.persistent.cached_bytes(), 4 * kMiB);
}

TEST(Persistent, WhenNothingCanBeMappedAnyGroupServes) {
  Mapped memory;
  memory.Take(4096);
  Persistent::Block block;
  EXPECT_FALSE(memory.persistent.Take({100 << 10, 0, shim::arena::kAnyStream, false}, &block));
  EXPECT_TRUE(
      memory.persistent.TakeAnywhere({100 << 10, 0, shim::arena::kAnyStream, false}, &block));
}

// No overlap; every block inside a mapped range; accounts exact; all given back at the end.
TEST(Persistent, RandomEventsAgreeWithAModel) {
  const uint64_t seed = harness::Seed();
  Random random(seed);
  Mapped memory;
  Live<Persistent::Block> live;
  uint64_t used[4] = {};
  std::set<uint32_t> ended;
  for (int event = 0; event < 200'000; ++event) {
    const uint32_t owner = static_cast<uint32_t>(random.In(0, 3));
    if (random.OneIn(5000)) {
      std::vector<Range> unmap;
      if (random.OneIn(2)) {
        memory.persistent.Trim(&unmap);
      } else {
        memory.persistent.Release(owner, random.Size(28), &unmap);
      }
      memory.Unmap(unmap);
    }
    if (random.OneIn(500)) {
      std::vector<Range> unmap;
      memory.persistent.SetThreshold(owner, random.Size(26));
      memory.persistent.OnSynchronized(&unmap);
      memory.Unmap(unmap);
    }
    if (live.empty() || (live.size() < 400 && random.In(0, 99) < 51)) {
      const uint64_t bytes = random.Size(24);
      const Persistent::Block block =
          memory.Take(bytes, owner, static_cast<int32_t>(random.In(0, 2)) - 1, random.OneIn(3));
      ASSERT_EQ(block.bytes, RoundUp(bytes, kAlignment));
      ASSERT_NO_FATAL_FAILURE(live.Add(block.address, block.bytes, block));
      std::map<uint64_t, uint64_t>::const_iterator range = memory.ranges.upper_bound(block.address);
      ASSERT_NE(range, memory.ranges.begin());
      --range;
      ASSERT_LE(block.address + block.bytes, range->first + range->second) << "seed " << seed;
      used[owner] += block.bytes;
    } else {
      const Persistent::Block block = live.Remove(live.At(random.In(0, live.size() - 1)));
      memory.Give(block);
      used[block.owner] -= block.bytes;
    }
    ASSERT_EQ(memory.persistent.live_bytes(), live.bytes());
    ASSERT_EQ(memory.persistent.mapped_bytes(), memory.MappedBytes()) << "seed " << seed;
    for (uint32_t i = 1; i < 4; ++i) {
      const Persistent::Usage usage = memory.persistent.UsageOf(i);
      ASSERT_EQ(usage.used, used[i]);
      ASSERT_GE(usage.reserved, usage.used);
      ASSERT_GE(usage.used_high, usage.used);
      ASSERT_LE(usage.held, usage.reserved);
    }
  }
  while (!live.empty()) memory.Give(live.Remove(live.At(0)));
  std::vector<Range> unmap;
  for (uint32_t i = 1; i < 4; ++i) memory.persistent.EndOwner(i, &unmap);
  memory.persistent.Trim(&unmap);
  memory.Unmap(unmap);
  EXPECT_EQ(memory.MappedBytes(), 0u) << "seed " << seed;
  EXPECT_EQ(memory.persistent.cached_bytes(), 0u);
  EXPECT_EQ(memory.persistent.held_bytes(), 0u);
}

TEST(Addresses, GiveEverythingOutAgainInOnePiece) {
  Random random(harness::Seed());
  Addresses addresses(kGiB, kGiB);
  std::vector<Range> taken;
  for (int i = 0; i < 20'000; ++i) {
    if (random.OneIn(2)) {
      const uint64_t bytes = kRangeBytes * random.In(1, 8);
      if (const std::optional<uint64_t> base = addresses.Take(bytes); base.has_value())
        taken.push_back({*base, bytes});
    } else if (!taken.empty()) {
      const size_t n = random.In(0, taken.size() - 1);
      addresses.Give(taken[n]);
      taken.erase(taken.begin() + static_cast<long>(n));
    }
  }
  for (const Range& range : taken) addresses.Give(range);
  EXPECT_EQ(addresses.Take(kGiB), kGiB);
}

TEST(Persistent, SmallBlocksOfTwoStreamsLieInTwoRanges) {
  Mapped program;
  const Persistent::Block one = program.Take(512, Persistent::kProgram, 3);
  const Persistent::Block same = program.Take(512, Persistent::kProgram, 3);
  const Persistent::Block other = program.Take(512, Persistent::kProgram, 4);
  EXPECT_EQ(one.address / kRangeBytes, same.address / kRangeBytes);
  EXPECT_NE(one.address / kRangeBytes, other.address / kRangeBytes);
}

TEST(Persistent, OfTwoEmptyRangesTheOneWithoutAFenceIsTaken) {
  for (const int32_t slot : {3, 4}) {
    Mapped program;
    const Persistent::Block three = program.Take(4 * kMiB), four = program.Take(4 * kMiB);
    std::vector<Range> unmap;
    program.persistent.Give(three, {1, 3}, &unmap);
    program.persistent.Give(four, {1, 4}, &unmap);
    EXPECT_EQ(program.Take(4 * kMiB, Persistent::kProgram, slot).address,
              slot == 3 ? three.address : four.address);
  }
}

TEST(Persistent, WhatADestroyedPoolsBlocksLeaveIsHeldByNobody) {
  Mapped program;
  const Persistent::Block block = program.Take(4 * kMiB, 7);
  std::vector<Range> unmap;
  program.persistent.EndOwner(7, &unmap);
  program.Give(block);
  EXPECT_EQ(program.persistent.held_bytes(), 0u);
  EXPECT_EQ(program.persistent.cached_bytes(), 4 * kMiB);
}

TEST(Persistent, ABoundaryGivesBackWhatItsIterationDidNotNeed) {
  Mapped program;
  const Persistent::Block needed = program.Take(4 * kMiB), spare = program.Take(8 * kMiB);
  program.Give(needed);
  program.Give(spare);
  std::vector<Range> unmap;
  program.persistent.ReleaseUnneeded(&unmap);
  program.Give(program.Take(4 * kMiB));
  program.Unmap(unmap);
  unmap.clear();
  program.persistent.ReleaseUnneeded(&unmap);
  program.Unmap(unmap);
  EXPECT_EQ(program.persistent.cached_bytes(), 4 * kMiB) << "the iteration used that";
}

}  // namespace
}  // namespace shim_arena_test
