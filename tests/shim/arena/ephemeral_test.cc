#include "shim/arena/ephemeral.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/harness/seed.h"
#include "tests/shim/arena/model.h"
#include "tests/shim/arena/random.h"

namespace shim_arena_test {
namespace {

using shim::arena::Blocks;
using shim::arena::Ephemeral;

constexpr uint64_t kBase = uint64_t{1} << 40, kPart = uint64_t{1} << 34;

// One program: at each step a block is born, or the one that was born `gap` steps ago dies.
struct Step {
  uint64_t bytes = 0;  // 0: a death
  size_t which = 0;    // of the births
};

std::vector<Step> Program(Random* random) {
  std::vector<Step> steps;
  std::vector<size_t> alive;
  size_t births = 0;
  for (uint64_t i = random->In(1, 200); i > 0; --i) {
    if (alive.empty() || random->In(0, 9) < 6) {
      steps.push_back({random->Size(23), 0});
      alive.push_back(births++);
      continue;
    }
    const size_t n = random->In(0, alive.size() - 1);
    steps.push_back({0, alive[n]});
    alive.erase(alive.begin() + static_cast<long>(n));
  }
  while (!alive.empty()) {
    const size_t n = random->In(0, alive.size() - 1);
    steps.push_back({0, alive[n]});
    alive.erase(alive.begin() + static_cast<long>(n));
  }
  return steps;
}

std::vector<uint64_t> RunOnce(const std::vector<Step>& steps, Ephemeral* part,
                              Live<Blocks::Index>* live) {
  std::vector<uint64_t> addresses;
  std::vector<Blocks::Taken> born;
  for (const Step& step : steps) {
    if (step.bytes == 0) {
      const Blocks::Taken& block = born[step.which];
      part->Give(live->Remove(block.address), {block.address, block.bytes}, {});
      continue;
    }
    Blocks::Taken taken;
    EXPECT_TRUE(part->Take(step.bytes, &taken));
    part->Grow(part->GrowthFor(taken));
    EXPECT_EQ(part->GrowthFor(taken), 0u);
    live->Add(taken.address, taken.bytes, taken.index);
    EXPECT_LE(taken.address + taken.bytes, kBase + part->lane_bytes());
    born.push_back(taken);
    addresses.push_back(taken.address);
  }
  return addresses;
}

TEST(Ephemeral, EqualIterationsGetEqualAddresses) {
  const uint64_t seed = harness::Seed();
  Random random(seed);
  for (int job = 0; job < 200; ++job) {
    Ephemeral part(kBase, kPart);
    Live<Blocks::Index> live;
    const std::vector<Step> steps = Program(&random);
    uint64_t lane = 0;
    std::vector<uint64_t> first;  // while the lane grows
    uint64_t peak = 0;
    for (int iteration = 0; iteration < 4; ++iteration) {
      const std::vector<uint64_t> addresses = RunOnce(steps, &part, &live);
      ASSERT_EQ(part.live_bytes(), 0u) << "seed " << seed;
      if (iteration == 0) {
        first = addresses;
        lane = part.lane_bytes();
      }
      ASSERT_EQ(addresses, first) << "seed " << seed << " job " << job;
      const uint64_t reached = part.OnBoundary();
      if (iteration == 0) peak = reached;
      ASSERT_EQ(reached, peak);
      ASSERT_LE(reached, part.lane_bytes());
      ASSERT_EQ(part.peak_bytes(), 0u);
    }
    ASSERT_EQ(part.lane_bytes(), lane) << "the same iteration needs no larger lane, seed " << seed;
  }
}

// Another iteration in between (a validation pass) changes nothing.
TEST(Ephemeral, TwoBodiesDoNotDisturbEachOther) {
  Random random(harness::Seed());
  for (int job = 0; job < 100; ++job) {
    Ephemeral part(kBase, kPart);
    Live<Blocks::Index> live;
    const std::vector<Step> a = Program(&random), b = Program(&random);
    const std::vector<uint64_t> first = RunOnce(a, &part, &live);
    part.OnBoundary();
    RunOnce(b, &part, &live);
    part.OnBoundary();
    ASSERT_EQ(RunOnce(a, &part, &live), first);
  }
}

// What outlives its boundary stays where it is; iterations around it still repeat.
TEST(Ephemeral, SurvivorsStayAndTheRestRepeats) {
  Random random(harness::Seed());
  for (int job = 0; job < 100; ++job) {
    Ephemeral part(kBase, kPart);
    Live<Blocks::Index> live;
    Blocks::Taken survivor;
    ASSERT_TRUE(part.Take(random.Size(20), &survivor));
    part.Grow(part.GrowthFor(survivor));
    live.Add(survivor.address, survivor.bytes, survivor.index);
    const std::vector<Step> steps = Program(&random);
    part.OnBoundary();
    const std::vector<uint64_t> first = RunOnce(steps, &part, &live);
    part.OnBoundary();
    ASSERT_EQ(part.live_bytes(), survivor.bytes);
    ASSERT_EQ(part.peak_bytes(), survivor.address + survivor.bytes - kBase);
    ASSERT_EQ(RunOnce(steps, &part, &live), first);
    part.Give(live.Remove(survivor.address), {survivor.address, survivor.bytes}, {});
    part.OnBoundary();
    ASSERT_EQ(part.live_bytes(), 0u);
  }
}

TEST(Ephemeral, RefusesWhatThePartCannotHold) {
  Ephemeral part(kBase, kPart);
  Blocks::Taken taken;
  EXPECT_FALSE(part.Take(kPart + 1, &taken));
  ASSERT_TRUE(part.Take(kPart, &taken));
  EXPECT_EQ(part.GrowthFor(taken), kPart);
  EXPECT_FALSE(part.Take(1, &taken));
}

// A growing iteration asks seldom, and never for more than its part of the addresses.
TEST(Ephemeral, ALaneGrowsAheadOfItsNeed) {
  constexpr uint64_t kMiB = 1 << 20;
  Ephemeral ephemeral(kBase, 100 * kMiB);
  Blocks::Taken taken;
  ASSERT_TRUE(ephemeral.Take(40 * kMiB, &taken));
  EXPECT_EQ(ephemeral.GrowthFor(taken), 40 * kMiB) << "nothing is known yet";
  ephemeral.Grow(40 * kMiB);
  EXPECT_EQ(ephemeral.GrowthFor(taken), 0u);
  ASSERT_TRUE(ephemeral.Take(kMiB, &taken));
  EXPECT_EQ(ephemeral.GrowthFor(taken), 46 * kMiB) << "an eighth ahead, in whole steps";
  ephemeral.Grow(96 * kMiB);
  ASSERT_TRUE(ephemeral.Take(57 * kMiB, &taken));
  EXPECT_EQ(ephemeral.GrowthFor(taken), 100 * kMiB) << "there is no more";
}

}  // namespace
}  // namespace shim_arena_test
