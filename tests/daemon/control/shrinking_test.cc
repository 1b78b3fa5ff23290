#include "daemon/control/shrinking.h"

#include <gtest/gtest.h>

#include <optional>

namespace control {
namespace {

constexpr Shrinking::Order kOrder = {7, 100};

TEST(ShrinkingTest, IsDoneWhenAllWhoWereToldHaveAnswered) {
  Shrinking shrinking;
  shrinking.Tell(kOrder, {1, 2});
  EXPECT_FALSE(shrinking.Answer(1, kOrder).has_value());
  EXPECT_FALSE(shrinking.Answer(1, kOrder).has_value()) << "it has answered";
  EXPECT_TRUE(shrinking.Answer(2, kOrder).has_value());
  EXPECT_FALSE(shrinking.Answer(2, kOrder).has_value()) << "nothing is asked any more";
}

TEST(ShrinkingTest, AnswersOfOthersAndToOtherOrdersDoNotCount) {
  Shrinking shrinking;
  shrinking.Tell(kOrder, {1});
  EXPECT_FALSE(shrinking.Answer(2, kOrder).has_value());
  EXPECT_FALSE(shrinking.Answer(1, {7, 200}).has_value());
  EXPECT_FALSE(shrinking.Answer(1, {8, 100}).has_value());
  EXPECT_TRUE(shrinking.Answer(1, kOrder).has_value());
}

// A lanewayd that has just begun to serve shrinks a lane to what is counted; its last session ends
// before the worker's answer.
TEST(ShrinkingTest, ANewerOrderIsDoneWithTheAnswersToBoth) {
  for (const bool older_first : {true, false}) {
    Shrinking shrinking;
    shrinking.Tell(kOrder, {1});
    shrinking.Tell({7, 0}, {1});
    const Shrinking::Order newer = {7, 0};
    EXPECT_FALSE(shrinking.Answer(1, older_first ? kOrder : newer).has_value());
    const std::optional<Shrinking::Order> done = shrinking.Answer(1, older_first ? newer : kOrder);
    ASSERT_TRUE(done.has_value());
    EXPECT_EQ(done->bytes, 0u);
  }
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
  EXPECT_TRUE(shrinking.Answer(3, kOrder).has_value());
}

TEST(ShrinkingTest, WhoIsToldTwiceAnswersTwice) {
  Shrinking shrinking;
  shrinking.Tell(kOrder, {1, 2});
  for (const Shrinking::Order& lost : shrinking.Lose(1)) shrinking.Tell(lost, {2});
  EXPECT_FALSE(shrinking.Answer(2, kOrder).has_value());
  EXPECT_TRUE(shrinking.Answer(2, kOrder).has_value());
}

TEST(ShrinkingTest, WhatNobodyHeardWaitsForSomebody) {
  Shrinking shrinking;
  shrinking.Tell(kOrder, {});
  EXPECT_EQ(shrinking.Untold().size(), 1u);
  shrinking.Tell(kOrder, {4});
  EXPECT_EQ(shrinking.Untold().size(), 0u);
  EXPECT_TRUE(shrinking.Answer(4, kOrder).has_value());
  shrinking.Tell(kOrder, {});
  shrinking.Forget(kOrder.lane);
  EXPECT_EQ(shrinking.Untold().size(), 0u);
}

}  // namespace
}  // namespace control
