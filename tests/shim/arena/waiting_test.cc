// Freed blocks of the lane wait before they are used again, and the lane is never larger for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>
#include <vector>

#include "shim/arena/ephemeral.h"
#include "tests/harness/seed.h"
#include "tests/shim/arena/model.h"
#include "tests/shim/arena/random.h"

namespace shim_arena_test {
namespace {

using shim::arena::Blocks;
using shim::arena::Ephemeral;
using shim::arena::Range;

constexpr uint64_t kBase = uint64_t{1} << 40, kPart = uint64_t{1} << 34, kMiB = 1 << 20;

struct Step {
  enum class Kind { kBirth, kDeath, kWait } kind = Kind::kBirth;
  uint64_t bytes = 0;  // of a birth
  size_t which = 0;    // of the births, for a death
};

// Nothing outlives it.
std::vector<Step> Program(Random* random) {
  std::vector<Step> steps;
  std::vector<size_t> alive;
  size_t births = 0;
  const int bits_max = static_cast<int>(random->In(10, 23));
  const size_t alive_max = random->In(2, 60);
  const auto die = [&] {
    const size_t n = random->In(0, alive.size() - 1);
    steps.push_back({Step::Kind::kDeath, 0, alive[n]});
    alive.erase(alive.begin() + static_cast<long>(n));
  };
  for (uint64_t i = random->In(1, 300); i > 0; --i) {
    if (random->OneIn(40)) steps.push_back({Step::Kind::kWait});
    if (alive.empty() || (alive.size() < alive_max && random->In(0, 9) < 6)) {
      steps.push_back({Step::Kind::kBirth, random->Size(bits_max)});
      alive.push_back(births++);
    } else {
      die();
    }
  }
  while (!alive.empty()) die();
  return steps;
}

// A lane with the session's side of it.
struct Lane {
  Ephemeral part{kBase, kPart};
  Live<Blocks::Index> live;

  Blocks::Taken Take(uint64_t bytes) {
    Blocks::Taken taken;
    EXPECT_TRUE(part.Take(bytes, &taken));
    part.Grow(part.GrowthFor(taken));
    live.Add(taken.address, taken.bytes, taken.index);
    return taken;
  }
  void Give(const Blocks::Taken& taken) {
    part.Give(live.Remove(taken.address), {taken.address, taken.bytes}, {});
  }
  // An iteration; the addresses that it got.
  std::vector<uint64_t> Iterate(const std::vector<Step>& steps) {
    std::vector<uint64_t> addresses;
    std::vector<Blocks::Taken> born;
    for (const Step& step : steps) {
      if (step.kind == Step::Kind::kWait) part.OnWaited();
      if (step.kind == Step::Kind::kDeath) Give(born[step.which]);
      if (step.kind != Step::Kind::kBirth) continue;
      born.push_back(Take(step.bytes));
      addresses.push_back(born.back().address);
    }
    part.OnBoundary();
    EXPECT_EQ(part.live_bytes(), live.bytes());
    return addresses;
  }
};

TEST(Waiting, TheLaneIsNeverLargerForItAndAddressesRepeat) {
  const uint64_t seed = harness::Seed();
  Random random(seed);
  int moved = 0;
  for (int job = 0; job < 300; ++job) {
    const std::vector<Step> steps = Program(&random);
    Lane lane, without;
    lane.part.HoldFreed(true);
    std::vector<uint64_t> planned;
    for (int iteration = 0; iteration < 8; ++iteration) {
      const std::vector<uint64_t> plain = without.Iterate(steps), mine = lane.Iterate(steps);
      ASSERT_EQ(lane.part.lane_bytes(), without.part.lane_bytes()) << "seed " << seed;
      if (iteration < 3) {
        ASSERT_EQ(mine, plain) << "it is not known yet, seed " << seed;
      }
      if (iteration == 3) {
        planned = mine;
        moved += mine == plain ? 0 : 1;
      }
      if (iteration > 3) {
        ASSERT_EQ(mine, planned) << "seed " << seed << " job " << job;
      }
    }
  }
  EXPECT_GT(moved, 30) << "waiting must change addresses somewhere, seed " << seed;
}

// Training and validation in turn: each has its own addresses again, in a lane that is as large as
// both need.
TEST(Waiting, TwoBodiesDoNotDisturbEachOther) {
  const uint64_t seed = harness::Seed();
  Random random(seed);
  for (int job = 0; job < 100; ++job) {
    const std::vector<Step> a = Program(&random), b = Program(&random);
    Lane lane;
    lane.part.HoldFreed(true);
    for (int i = 0; i < 3; ++i) lane.Iterate(b);
    for (int i = 0; i < 4; ++i) lane.Iterate(a);
    for (int i = 0; i < 4; ++i) lane.Iterate(b);
    const std::vector<uint64_t> of_b = lane.Iterate(b), of_a = lane.Iterate(a);
    const uint64_t lane_bytes = lane.part.lane_bytes();
    for (int i = 0; i < 6; ++i) {
      ASSERT_EQ(lane.Iterate(i % 3 == 1 ? b : a), i % 3 == 1 ? of_b : of_a) << "seed " << seed;
      ASSERT_EQ(lane.part.lane_bytes(), lane_bytes) << "seed " << seed;
    }
  }
}

// In a lane with room enough no birth touches what waits, by a list kept the plain way.
TEST(Waiting, WhatWasFreedLastIsNotUsedNext) {
  const uint64_t seed = harness::Seed();
  Random random(seed);
  for (int job = 0; job < 100; ++job) {
    const std::vector<Step> steps = Program(&random);
    Lane lane;
    lane.part.HoldFreed(true);
    lane.part.Grow(kPart);
    for (int i = 0; i < 3; ++i) lane.Iterate(steps);
    std::deque<Range> waiting;
    uint64_t bytes = 0;
    std::vector<Blocks::Taken> born;
    for (const Step& step : steps) {
      if (step.kind == Step::Kind::kWait) {
        lane.part.OnWaited();
        waiting.clear();
        bytes = 0;
      } else if (step.kind == Step::Kind::kDeath) {
        const Blocks::Taken& block = born[step.which];
        lane.Give(block);
        if (block.bytes > Ephemeral::kWaitingBytesMax) continue;
        waiting.push_back({block.address, block.bytes});
        for (bytes += block.bytes; bytes > Ephemeral::kWaitingBytesMax; waiting.pop_front())
          bytes -= waiting.front().bytes;
      } else {
        born.push_back(lane.Take(step.bytes));
        const uint64_t begin = born.back().address, end = begin + born.back().bytes;
        for (const Range& range : waiting)
          ASSERT_TRUE(end <= range.base || range.base + range.bytes <= begin) << "seed " << seed;
      }
    }
  }
}

class WaitingTest : public testing::Test {
 protected:
  WaitingTest() { lane_.part.HoldFreed(true); }

  // Whether a block that was freed is not the one that comes next.
  bool Waits() {
    const Blocks::Taken first = lane_.Take(kMiB);
    lane_.Give(first);
    const Blocks::Taken second = lane_.Take(kMiB);
    lane_.Give(second);
    return first.address != second.address;
  }
  bool IterateAndTell() {
    const bool waits = Waits();
    lane_.part.OnBoundary();
    return waits;
  }
  void Learn() {
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(IterateAndTell());
    EXPECT_TRUE(IterateAndTell());
  }

  Lane lane_;
};

TEST_F(WaitingTest, ADeviationEndsIt) {
  Learn();
  lane_.Give(lane_.Take(512));
  EXPECT_FALSE(Waits());
  lane_.part.OnBoundary();
  EXPECT_TRUE(IterateAndTell());
}

// Blocks wait for as long as the lane has other room, not for a fixed part of it.
TEST_F(WaitingTest, TheWholeLaneIsUsedBeforeABlockComesAgain) {
  for (int iteration = 0; iteration < 4; ++iteration) {
    std::set<uint64_t> addresses;
    for (int i = 0; i < 12; ++i) {
      const Blocks::Taken taken = lane_.Take(kMiB / 2);
      lane_.Give(taken);
      addresses.insert(taken.address);
    }
    lane_.part.OnBoundary();
    EXPECT_EQ(addresses.size(), iteration < 3 ? 1u : 4u);
    EXPECT_EQ(lane_.part.lane_bytes(), 2 * kMiB);
  }
}

TEST_F(WaitingTest, NothingWaitsPastAWaitForTheDevice) {
  const auto iterate = [this] {
    const Blocks::Taken first = lane_.Take(kMiB);
    lane_.Give(first);
    lane_.part.OnWaited();
    const Blocks::Taken second = lane_.Take(kMiB);
    EXPECT_EQ(second.address, first.address);
    lane_.Give(second);
    const Blocks::Taken third = lane_.Take(kMiB);
    lane_.Give(third);
    lane_.part.OnBoundary();
    return third.address != second.address;
  };
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(iterate());
  EXPECT_TRUE(iterate());
}

TEST_F(WaitingTest, SwitchedOffNothingWaits) {
  Learn();
  lane_.part.HoldFreed(false);
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(IterateAndTell());
  lane_.part.HoldFreed(true);
  Learn();
}

TEST_F(WaitingTest, ALaneThatIsLostIsLearnedAnew) {
  Learn();
  lane_.part.OnLaneLost();
  EXPECT_EQ(lane_.part.live_bytes(), 0u);
  Learn();
}

// The stamp of its free goes with it, however long it has waited.
TEST_F(WaitingTest, ABlockKeepsTheStampOfItsFree) {
  lane_.part.Grow(8 * kMiB);
  const auto iterate = [this](uint64_t epoch) {
    const Blocks::Taken first = lane_.Take(kMiB);
    lane_.part.Give(lane_.live.Remove(first.address), {first.address, first.bytes}, {epoch, 3});
    const Blocks::Taken second = lane_.Take(2 * kMiB);
    lane_.Give(second);
    const Blocks::Taken third = lane_.Take(kMiB);
    lane_.Give(third);
    lane_.part.OnBoundary();
    return std::pair(first, third);
  };
  for (uint64_t epoch = 1; epoch <= 3; ++epoch) iterate(epoch);
  const auto [first, third] = iterate(4);
  EXPECT_NE(third.address, first.address);
  Blocks::Taken again;
  ASSERT_TRUE(lane_.part.Take(kMiB, &again));
  EXPECT_EQ(again.address, first.address);
  EXPECT_EQ(again.stamp.epoch, 4u);
}

}  // namespace
}  // namespace shim_arena_test
