// How long runs that differ are held before they are not, and how soon runs that repeat are again.
#include "ipc/chunks/hold_trust.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/harness/seed.h"

namespace ipc {
namespace {

constexpr uint32_t kRun = 50;  // messages

// How many of so many runs are held.
uint32_t HeldOf(HoldTrust* trust, uint32_t runs, bool repeated) {
  uint32_t held = 0;
  for (uint32_t i = 0; i < runs; ++i) {
    if (!trust->MayHold()) continue;
    ++held;
    if (repeated) {
      trust->OnRepeated(kRun);
    } else {
      trust->OnDiffered(kRun);
    }
  }
  return held;
}

TEST(HoldTrustTest, RunsThatRepeatAreHeld) {
  HoldTrust trust;
  EXPECT_EQ(HeldOf(&trust, 5'000, true), 5'000u);
}

TEST(HoldTrustTest, RunsThatDifferAreHeldEverMoreRarely) {
  HoldTrust trust;
  constexpr uint32_t kBefore = HoldTrust::kMost / kRun + 1;
  EXPECT_EQ(HeldOf(&trust, kBefore + HoldTrust::kFirstRest, false), kBefore);
  uint32_t rest = HoldTrust::kFirstRest;
  for (int i = 0; i < 10; ++i) {
    rest = std::min(rest * 2, HoldTrust::kLongestRest);
    EXPECT_EQ(HeldOf(&trust, 1 + rest, false), 1u) << i;
  }
}

TEST(HoldTrustTest, RunsThatRepeatAgainAreHeldAgain) {
  HoldTrust trust;
  HeldOf(&trust, 100'000, false);
  HeldOf(&trust, HoldTrust::kLongestRest, true);
  EXPECT_EQ(HeldOf(&trust, 1'000, true), 1'000u);
  constexpr uint32_t kBefore = HoldTrust::kMost / kRun + 1;
  EXPECT_EQ(HeldOf(&trust, kBefore + HoldTrust::kFirstRest, false), kBefore) << "it is forgiven";
  EXPECT_TRUE(trust.MayHold());
}

TEST(HoldTrustTest, LongRunsThatRepeatOutweighShortOnesThatDiffer) {
  HoldTrust trust;
  for (int i = 0; i < 1'000; ++i) {
    for (int differing = 0; differing < 8; ++differing) {
      ASSERT_TRUE(trust.MayHold());
      trust.OnDiffered(5);
    }
    ASSERT_TRUE(trust.MayHold());
    trust.OnRepeated(kRun);
  }
}

// The messages held in vain are at most those repeated, and a few for each rest.
TEST(HoldTrustTest, WhateverComesLittleIsHeldInVain) {
  std::mt19937_64 random(harness::Seed());
  for (uint32_t program = 0; program < 500; ++program) {
    HoldTrust trust;
    uint64_t repeated = 0, in_vain = 0, rests = 0;
    const uint64_t likely = random() % 11;
    bool was_held = true;
    for (uint32_t run = 0; run < 3'000; ++run) {
      const bool held = trust.MayHold();
      rests += was_held && !held;
      was_held = held;
      if (!held) continue;
      const uint32_t messages = 1 + static_cast<uint32_t>(random() % 64);
      if (random() % 10 < likely) {
        trust.OnRepeated(messages);
        repeated += messages;
      } else {
        trust.OnDiffered(messages);
        in_vain += messages;
      }
      ASSERT_LE(in_vain, repeated + HoldTrust::kMost + (rests + 1) * 64) << likely;
    }
    if (likely == 10) EXPECT_EQ(rests, 0u);
    if (likely == 0) EXPECT_LE(rests, 3'000 / HoldTrust::kLongestRest + 6);
  }
}

}  // namespace
}  // namespace ipc
