#include "daemon/control/shrinking.h"

#include <gtest/gtest.h>

namespace control {
namespace {

constexpr Shrinking::Order kOrder = {7, 100};

TEST(ShrinkingTest, IsDoneWhenAllWhoWereToldHaveAnswered) {
  Shrinking shrinking;
  shrinking.Tell(kOrder, {1, 2});
  EXPECT_FALSE(shrinking.Answer(1, kOrder));
  EXPECT_FALSE(shrinking.Answer(1, kOrder)) << "it has answered";
  EXPECT_TRUE(shrinking.Answer(2, kOrder));
  EXPECT_FALSE(shrinking.Answer(2, kOrder)) << "nothing is asked any more";
}

TEST(ShrinkingTest, AnswersOfOthersAndToOtherOrdersDoNotCount) {
  Shrinking shrinking;
  shrinking.Tell(kOrder, {1});
  EXPECT_FALSE(shrinking.Answer(2, kOrder));
  EXPECT_FALSE(shrinking.Answer(1, {7, 200}));
  EXPECT_FALSE(shrinking.Answer(1, {8, 100}));
  EXPECT_TRUE(shrinking.Answer(1, kOrder));
}

TEST(ShrinkingTest, WhatALostWorkerHasNotAnsweredIsToldAnew) {
  Shrinking shrinking;
  shrinking.Tell(kOrder, {1});
  shrinking.Tell({8, 0}, {2});
  const std::vector<Shrinking::Order> lost = shrinking.Lose(1);
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].lane, 7u);
  EXPECT_EQ(lost[0].bytes, 100u);
  EXPECT_EQ(shrinking.Lose(1).size(), 0u);
  shrinking.Tell(lost[0], {3});
  EXPECT_TRUE(shrinking.Answer(3, kOrder));
}

TEST(ShrinkingTest, WhoIsToldTwiceAnswersTwice) {
  Shrinking shrinking;
  shrinking.Tell(kOrder, {1, 2});
  for (const Shrinking::Order& lost : shrinking.Lose(1)) shrinking.Tell(lost, {2});
  EXPECT_FALSE(shrinking.Answer(2, kOrder));
  EXPECT_TRUE(shrinking.Answer(2, kOrder));
}

TEST(ShrinkingTest, WhatNobodyHeardWaitsForSomebody) {
  Shrinking shrinking;
  shrinking.Tell(kOrder, {});
  EXPECT_EQ(shrinking.Untold().size(), 1u);
  shrinking.Tell(kOrder, {4});
  EXPECT_EQ(shrinking.Untold().size(), 0u);
  EXPECT_TRUE(shrinking.Answer(4, kOrder));
  shrinking.Tell(kOrder, {});
  shrinking.Forget(kOrder.lane);
  EXPECT_EQ(shrinking.Untold().size(), 0u);
}

}  // namespace
}  // namespace control
