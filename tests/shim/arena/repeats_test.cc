#include "shim/arena/repeats.h"

#include <gtest/gtest.h>

#include <vector>

namespace shim_arena_test {
namespace {

using shim::arena::Repeats;
using Kind = Repeats::Op::Kind;

constexpr Repeats::Start kEmpty;

// An iteration that allocates blocks of these sizes. True: it is to be tried.
bool Iterate(const std::vector<uint64_t>& sizes, Repeats* repeats, Repeats::Start next = kEmpty) {
  for (const uint64_t bytes : sizes) repeats->OnOp({Kind::kTake, false, bytes});
  const Repeats::Iteration* const wanted = repeats->OnBoundary(next);
  if (wanted != nullptr) repeats->Learn(*wanted, sizes.front());
  return wanted != nullptr;
}

TEST(Repeats, AnIterationIsTriedOnceWhenItHasComeTwice) {
  Repeats repeats;
  EXPECT_FALSE(Iterate({1, 2}, &repeats));
  EXPECT_EQ(repeats.bytes_max(), 0u);
  EXPECT_TRUE(Iterate({1, 2}, &repeats));
  EXPECT_EQ(repeats.bytes_max(), 1u) << "the next one may be its repeat";
  EXPECT_FALSE(Iterate({1, 2}, &repeats));
  EXPECT_FALSE(Iterate({1, 2}, &repeats));
}

TEST(Repeats, WhatAlternatesIsNotTried) {
  Repeats repeats;
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(Iterate({1, 2}, &repeats));
    EXPECT_FALSE(Iterate({1, 3}, &repeats));
  }
}

TEST(Repeats, AfterADeviationAnotherEqualIterationDecidesOrNone) {
  Repeats repeats;
  Iterate({9, 1, 5}, &repeats);
  Iterate({9, 1, 5}, &repeats);
  Iterate({7, 2}, &repeats);
  Iterate({7, 2}, &repeats);
  EXPECT_EQ(repeats.bytes_max(), 9u) << "the older one, while both may come";
  repeats.OnOp({Kind::kTake, false, 7});
  EXPECT_EQ(repeats.bytes_max(), 7u);
  repeats.OnOp({Kind::kTake, false, 3});
  EXPECT_EQ(repeats.bytes_max(), 0u);
  repeats.OnBoundary(kEmpty);
  EXPECT_EQ(repeats.bytes_max(), 9u);
  EXPECT_FALSE(Iterate({7, 2}, &repeats)) << "it is known";
}

TEST(Repeats, ALongerOrShorterIterationIsAnother) {
  Repeats repeats;
  Iterate({4, 5}, &repeats);
  Iterate({4, 5}, &repeats);
  repeats.OnOp({Kind::kTake, false, 4});
  repeats.OnOp({Kind::kTake, false, 5});
  EXPECT_EQ(repeats.bytes_max(), 4u);
  repeats.OnOp({Kind::kTake, false, 6});
  EXPECT_EQ(repeats.bytes_max(), 0u);
  repeats.OnBoundary(kEmpty);
  EXPECT_FALSE(Iterate({4}, &repeats));
  EXPECT_TRUE(Iterate({4}, &repeats));
}

TEST(Repeats, WhatIsLiveAtTheBeginningTellsIterationsApart) {
  Repeats repeats;
  constexpr Repeats::Start kOther = {512, 512};
  EXPECT_FALSE(Iterate({1}, &repeats));
  EXPECT_FALSE(Iterate({1}, &repeats, kOther)) << "the next one would begin otherwise";
  EXPECT_FALSE(Iterate({1}, &repeats, kOther));
  EXPECT_TRUE(Iterate({1}, &repeats, kOther));
  EXPECT_EQ(repeats.bytes_max(), 1u);
  EXPECT_FALSE(Iterate({1}, &repeats, kEmpty));
  EXPECT_EQ(repeats.bytes_max(), 0u);
}

TEST(Repeats, LongIterationsAreNotKept) {
  Repeats repeats;
  const std::vector<uint64_t> sizes(Repeats::kOpsMax + 1, 1);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(Iterate(sizes, &repeats));
  const std::vector<uint64_t> shorter(Repeats::kOpsMax, 1);
  EXPECT_FALSE(Iterate(shorter, &repeats));
  EXPECT_TRUE(Iterate(shorter, &repeats));
}

TEST(Repeats, TheOldestIsForgottenForANewOne) {
  Repeats repeats;
  for (uint64_t body = 1; body <= Repeats::kKnownMax + 1; ++body) {
    Iterate({body}, &repeats);
    EXPECT_TRUE(Iterate({body}, &repeats));
  }
  EXPECT_FALSE(Iterate({1}, &repeats));
  EXPECT_TRUE(Iterate({1}, &repeats));
  EXPECT_FALSE(Iterate({3}, &repeats)) << "it is still known";
  repeats.Forget();
  EXPECT_EQ(repeats.bytes_max(), 0u);
  EXPECT_FALSE(Iterate({3}, &repeats)) << "it had begun before";
  EXPECT_FALSE(Iterate({3}, &repeats));
  EXPECT_TRUE(Iterate({3}, &repeats));
}

}  // namespace
}  // namespace shim_arena_test
