#include "shim/arena/addresses.h"

#include <gtest/gtest.h>

namespace shim_arena_test {
namespace {

using shim::arena::Addresses;

constexpr uint64_t kStep = uint64_t{2} << 20;

// The worker may still be about to unmap what lay there.
TEST(AddressesTest, WhatWasGivenBackIsGivenOutLast) {
  Addresses addresses(kStep, 4 * kStep);
  ASSERT_EQ(addresses.Take(kStep), kStep);
  addresses.Give({kStep, kStep});
  EXPECT_EQ(addresses.Take(kStep), 2 * kStep);
  EXPECT_EQ(addresses.Take(kStep), 3 * kStep);
  EXPECT_EQ(addresses.Take(kStep), 4 * kStep);
  EXPECT_EQ(addresses.Take(kStep), kStep);
  EXPECT_FALSE(addresses.Take(kStep).has_value());
}

TEST(AddressesTest, NeighboursBecomeOneAndAGapIsTakenOnlyByWhatFits) {
  Addresses addresses(kStep, 4 * kStep);
  for (uint64_t i = 1; i <= 4; ++i) ASSERT_EQ(addresses.Take(kStep), i * kStep);
  addresses.Give({kStep, kStep});
  addresses.Give({3 * kStep, kStep});
  EXPECT_FALSE(addresses.Take(2 * kStep).has_value()) << "one lies between";
  addresses.Give({2 * kStep, kStep});
  EXPECT_EQ(addresses.Take(3 * kStep), kStep);
}

}  // namespace
}  // namespace shim_arena_test
