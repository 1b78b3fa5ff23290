#include "functions/iteration_watch.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace functions {
namespace {

void Iterate(std::initializer_list<uint64_t> tokens, IterationWatch* watch) {
  bool first = true;
  for (const uint64_t token : tokens) {
    watch->OnCall(token, first);
    first = false;
  }
}

TEST(IterationWatchTest, TheThirdLikeIterationIsExpectedToBeFollowedByAnother) {
  IterationWatch watch;
  watch.OnCall(9, false);
  for (int i = 0; i < 3; ++i) {
    Iterate({1, 2, 3}, &watch);
    EXPECT_FALSE(watch.IsOver()) << i;
  }
  watch.OnCall(1, true);
  EXPECT_TRUE(watch.IsExpected());
  EXPECT_FALSE(watch.IsOver());
  watch.OnCall(2, false);
  EXPECT_FALSE(watch.IsOver());
  watch.OnCall(3, false);
  EXPECT_TRUE(watch.IsOver());
  watch.OnCall(4, false);
  EXPECT_FALSE(watch.IsOver());
}

TEST(IterationWatchTest, AnotherShapeBeginsTheCountAnew) {
  IterationWatch watch;
  for (int i = 0; i < 4; ++i) Iterate({1, 2}, &watch);
  EXPECT_TRUE(watch.IsOver());
  Iterate({1, 5}, &watch);
  EXPECT_FALSE(watch.IsOver());
  Iterate({1, 2}, &watch);
  EXPECT_FALSE(watch.IsExpected());
  for (int i = 0; i < 3; ++i) Iterate({1, 2}, &watch);
  EXPECT_TRUE(watch.IsOver());
}

TEST(IterationWatchTest, TheOrderOfCallsIsPartOfTheShape) {
  IterationWatch one, other;
  for (int i = 0; i < 2; ++i) {
    Iterate({1, 2}, &one);
    Iterate({2, 1}, &other);
  }
  EXPECT_NE(one.shape(), other.shape());
}

}  // namespace
}  // namespace functions
