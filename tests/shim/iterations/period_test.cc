// Which period explains what has come: that of the whole, not of a part that is in it twice.
#include "shim/iterations/period.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace shim::iterations {
namespace {

class PeriodTest : public ::testing::Test {
 protected:
  void Push(uint32_t identity) {
    Op op;
    op.identity = identity * 0x9e3779b9u + 1;
    history_.Push(op);
    finder_.Advance(history_, true);
  }
  // Operations first, first + 1, ...
  void Run(uint32_t first, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) Push(first + i);
  }

  History history_;
  PeriodFinder finder_;
};

TEST_F(PeriodTest, CountsTheRoundsThatAreEqual) {
  Run(900, 5);
  for (int round = 0; round < 3; ++round) Run(1, 10);
  EXPECT_EQ(finder_.period(), 10u);
  EXPECT_EQ(finder_.run(), 20u);
  EXPECT_EQ(finder_.rounds(), 3u);
  EXPECT_EQ(finder_.begin(history_), 5u);
  Push(999);
  EXPECT_EQ(finder_.period(), 0u) << "one operation that differs ends it";
  EXPECT_EQ(finder_.rounds(), 0u);
}

// A step of 80 operations comes twice in each round, once before the one of two ends and once
// before the other: within its second one, the first one explains the step alone.
TEST_F(PeriodTest, WhatIsInARoundTwiceIsNotTheRound) {
  for (int round = 0; round < 3; ++round) {
    Run(1, 80);
    Run(100, 3);
    Run(1, 80);
    Run(200, 20);
  }
  Run(1, 80);
  Run(100, 3);
  Run(1, 70);
  EXPECT_EQ(finder_.period(), 183u);
  EXPECT_GE(finder_.run(), 2u * 183u);
}

// Two kernels in an order that repeats after 32: each four that follow each other are in it twice
// (a sequence of de Bruijn's), so that only more of them tell where it begins again.
TEST_F(PeriodTest, FewOperationsNeedNotTellTheRound) {
  constexpr char kRound[] = "00000100011001010011101011011111";
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 32; ++i) Push(kRound[i] == '1');
  }
  EXPECT_EQ(finder_.period(), 32u);
  EXPECT_GE(finder_.run(), 2u * 32u);
}

TEST_F(PeriodTest, APeriodStaysUntilAnotherExplainsMore) {
  for (int round = 0; round < 40; ++round) Run(1, 8);
  ASSERT_EQ(finder_.period(), 8u);
  const uint64_t run = finder_.run();
  EXPECT_EQ(run, 39u * 8u);
  Run(1, 8);
  EXPECT_EQ(finder_.period(), 8u);
  EXPECT_EQ(finder_.run(), run + 8);
}

}  // namespace
}  // namespace shim::iterations
