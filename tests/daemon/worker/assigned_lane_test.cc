#include "daemon/worker/assigned_lane.h"

#include <gtest/gtest.h>

namespace worker {
namespace {

constexpr uint64_t kBytes = 100;

// In lane 5, with some of it.
class AssignedLaneTest : public ::testing::Test {
 protected:
  AssignedLaneTest() {
    lane_.Told(5);
    lane_.Grown(kBytes);
  }
  AssignedLane lane_;
};

TEST(UnusedLaneTest, WhoUsesNoLaneChangesToNone) {
  AssignedLane lane;
  lane.Told(5);
  EXPECT_EQ(lane.Follow(5, false), 0u);
  EXPECT_EQ(lane.told(), 5u) << "its first growth goes there";
  EXPECT_FALSE(lane.Lacks(false));
}

TEST(UnusedLaneTest, ItsFirstWishSaysOnWhichDevice) {
  AssignedLane lane;
  EXPECT_TRUE(lane.MustAsk(kBytes, 1, false));
  EXPECT_EQ(lane.device(), 1);
  lane.Grown(kBytes);
  EXPECT_TRUE(lane.MustAsk(2 * kBytes, 0, true));
  EXPECT_EQ(lane.device(), 1) << "its lane is there";
  lane.GivenBack();
  EXPECT_TRUE(lane.MustAsk(kBytes, 0, false));
  EXPECT_EQ(lane.device(), 0);
}

TEST_F(AssignedLaneTest, TheLastWordCounts) {
  lane_.Told(6);
  lane_.Told(7);
  EXPECT_EQ(lane_.Follow(6, false), 0u) << "it may have ended";
  EXPECT_EQ(lane_.Follow(7, false), 7u);
}

TEST_F(AssignedLaneTest, InsideAnIterationItFollowsAtTheEnd) {
  lane_.Told(6);
  EXPECT_EQ(lane_.Follow(6, false, true), 0u);
  EXPECT_TRUE(lane_.follows_late());
  lane_.Told(7);
  EXPECT_EQ(lane_.FollowLate(), 7u) << "the last word counts";
  EXPECT_EQ(lane_.FollowLate(), 0u);
  (void)lane_.Follow(7, false, true);
  lane_.Gone();
  EXPECT_FALSE(lane_.follows_late()) << "on the way back lanewayd tells it anew";
}

TEST_F(AssignedLaneTest, GrowthAsksForMoreThanItHasAlone) {
  EXPECT_FALSE(lane_.MustAsk(kBytes, 0, true));
  EXPECT_TRUE(lane_.MustAsk(kBytes + 1, 0, true));
  EXPECT_TRUE(lane_.MustAsk(kBytes, 0, false)) << "it is in no lane";
}

TEST_F(AssignedLaneTest, WhatIsGivenBackIsNotReservedAgain) {
  lane_.GivenBack();
  EXPECT_EQ(lane_.bytes(), 0u);
  lane_.Told(6);
  EXPECT_EQ(lane_.Follow(6, false), 0u) << "nothing of it is to be in a lane";
  EXPECT_TRUE(lane_.MustAsk(1, 0, false));
}

TEST_F(AssignedLaneTest, WhatItIsToldOnTheHostCountsOnTheWayBack) {
  lane_.Gone();
  EXPECT_EQ(lane_.ForReturn(), 0u) << "its lane of before may have ended";
  lane_.Told(6);
  EXPECT_EQ(lane_.Follow(6, true), 0u) << "who is away is in no lane";
  lane_.Told(7);
  EXPECT_EQ(lane_.Follow(7, true), 0u);
  EXPECT_EQ(lane_.ForReturn(), 7u);
  EXPECT_FALSE(lane_.Lacks(true));
}

TEST_F(AssignedLaneTest, BackWithoutALaneItAsksForOne) {
  lane_.Gone();
  EXPECT_TRUE(lane_.Lacks(false));
  EXPECT_TRUE(lane_.MustAsk(kBytes, 0, false));
}

TEST_F(AssignedLaneTest, EachWayForgetsWhatWasToldOnTheOneBefore) {
  lane_.Gone();
  lane_.Told(6);
  (void)lane_.Follow(6, true);
  lane_.Gone();
  EXPECT_EQ(lane_.ForReturn(), 0u);
}

// The session reserves its part of the lane later than it is granted, and another lanewayd may come
// in between.
TEST(GrantedLaneTest, TheNextLanewaydIsToldOfTheGrant) {
  AssignedLane lane;
  lane.Granted(kBytes);
  EXPECT_EQ(lane.TellBytes(), kBytes);
  EXPECT_FALSE(lane.uses());
  lane.Granted(0);  // it was not to be had
  EXPECT_EQ(lane.TellBytes(), 0u);
  lane.Granted(kBytes);
  lane.Grown(kBytes);
  EXPECT_EQ(lane.TellBytes(), kBytes);
  lane.GivenBack();
  EXPECT_EQ(lane.TellBytes(), 0u);
}

// Another worker takes over what lies on the host: it is told of its lane before its client speaks,
// and reserves nothing before the client's replay does.
TEST(RebuiltLaneTest, OnTheHostItWaitsForItsReplay) {
  AssignedLane lane;
  lane.Gone();
  lane.Told(5);
  EXPECT_EQ(lane.Follow(5, true), 0u);
  EXPECT_EQ(lane.ForReturn(), 0u) << "nothing of it is to be in a lane yet";
  EXPECT_TRUE(lane.MustAsk(kBytes, 0, false));
  lane.Grown(kBytes);
  EXPECT_EQ(lane.Follow(5, false), 5u);
}

}  // namespace
}  // namespace worker
