#include "shim/arena/owners.h"

#include <gtest/gtest.h>

namespace shim::arena {
namespace {

constexpr uint32_t kPool = 3;

TEST(Owners, TheProgramIsOnlyCountedInAll) {
  Owners owners;
  owners.Use(Owners::kProgram, 100);
  owners.Reserve(Owners::kProgram, 100);
  EXPECT_EQ(owners.live_bytes(), 100u);
  EXPECT_EQ(owners.UsageOf(Owners::kProgram).used, 0u);
  EXPECT_EQ(owners.UsageOf(Owners::kProgram).reserved, 0u);
  EXPECT_FALSE(owners.Holds(Owners::kProgram));
}

TEST(Owners, HighMarksStayUntilTheyAreReset) {
  Owners owners;
  owners.Use(kPool, 100);
  owners.Use(kPool, -60);
  owners.Reserve(kPool, 200);
  owners.Reserve(kPool, -50);
  EXPECT_EQ(owners.UsageOf(kPool).used, 40u);
  EXPECT_EQ(owners.UsageOf(kPool).used_high, 100u);
  owners.ResetHigh(kPool, true);
  EXPECT_EQ(owners.UsageOf(kPool).used_high, 40u);
  EXPECT_EQ(owners.UsageOf(kPool).reserved_high, 200u);
  owners.ResetHigh(kPool, false);
  EXPECT_EQ(owners.UsageOf(kPool).reserved_high, 150u);
}

TEST(Owners, WhatLiesElsewhereCountsForItsOwnerAlone) {
  Owners owners;
  owners.Charge(kPool, 64);
  EXPECT_EQ(owners.UsageOf(kPool).used, 64u);
  EXPECT_EQ(owners.UsageOf(kPool).reserved, 64u);
  EXPECT_EQ(owners.live_bytes(), 0u);
}

TEST(Owners, AnEndedPoolHoldsNothing) {
  Owners owners;
  const Owners::Usage& usage = owners.Watch(kPool);
  EXPECT_TRUE(owners.Holds(kPool));
  owners.Hold(kPool, 32);
  EXPECT_EQ(usage.held, 32u);
  EXPECT_EQ(owners.held_bytes(), 32u);
  owners.End(kPool);
  EXPECT_FALSE(owners.Holds(kPool));
}

TEST(Owners, EachHasItsThreshold) {
  Owners owners;
  EXPECT_EQ(owners.ThresholdOf(kPool), 0u);
  owners.SetThreshold(kPool, 8);
  owners.SetThreshold(kPool + 1, 9);
  uint64_t sum = 0;
  owners.ForEach([&](uint32_t, const Owners::Usage&, uint64_t threshold) { sum += threshold; });
  EXPECT_EQ(sum, 17u);
  EXPECT_EQ(owners.ThresholdOf(kPool), 8u);
}

}  // namespace
}  // namespace shim::arena
