// What happens when the host has no room for memory that should leave the device.
#include <gtest/gtest.h>

#include <vector>

#include "scheduler/scheduler.h"
#include "scheduler/why.h"
#include "tests/scheduler/actions.h"
#include "tests/scheduler/state_test.h"

namespace scheduler {
namespace {

class SwapSpaceTest : public StateTest {
 protected:
  SwapSpaceTest() : StateTest("fifo") {
    state_.limits.swap_slice_us = 1'000;
    On(CapacityChanged{0, 100});
  }
};

// 1 and 2 hold 45 of 100 bytes each, nothing can leave, and both ask for more.
class NoSwapSpaceTest : public SwapSpaceTest {
 protected:
  NoSwapSpaceTest() {
    state_.limits.swap_bytes = 10;
    for (SessionId id = 1; id <= 2; ++id) {
      On(SessionArrived{id, id});
      On(Runnable{id});
      On(MemoryNeeded{id, 45});
    }
  }
};

TEST_F(NoSwapSpaceTest, FailsTheNewcomerAloneAfterAStandstill) {
  On(MemoryNeeded{2, 20});
  EXPECT_EQ(Of<RefuseMemory>(On(MemoryNeeded{1, 20})).size(), 0u);
  EXPECT_EQ(NextTimerUs(state_), now_us_ + state_.limits.standstill_us);
  EXPECT_NE(Sentence(Why(state_, 2, now_us_)).find("(--swap, 10 B) is used up"), std::string::npos);
  now_us_ = NextTimerUs(state_) - 2;
  EXPECT_EQ(Of<RefuseMemory>(On(Timer{})).size(), 0u);
  const std::vector<Action> actions = On(Timer{});
  ASSERT_EQ(Of<RefuseMemory>(actions).size(), 1u);
  EXPECT_EQ(Of<RefuseMemory>(actions)[0].session, 2u);
  EXPECT_NE(Of<RefuseMemory>(actions)[0].reason.find("used up"), std::string::npos);
}

TEST_F(NoSwapSpaceTest, AShortRestIsNoStandstill) {
  On(Idle{1});
  On(Switched{Get(1).lane, 1, 0});
  On(Idle{2});
  On(Switched{Get(2).lane, 2, 0});
  On(MemoryNeeded{2, 20});
  for (int round = 0; round < 5; ++round) {
    EXPECT_LT(NextTimerUs(state_), kUnlimited);
    now_us_ = NextTimerUs(state_) - 2;
    On(Runnable{1});
    EXPECT_TRUE(Get(1).granted);
    now_us_ += 2 * state_.limits.standstill_us;
    EXPECT_EQ(Of<RefuseMemory>(On(Timer{})).size(), 0u) << "1 runs";
    EXPECT_EQ(Of<RefuseMemory>(On(Idle{1})).size(), 0u) << "it rests from now on";
  }
  EXPECT_EQ(Of<GrantMemory>(On(SessionLeft{1})).size(), 1u);
  EXPECT_EQ(NextTimerUs(state_), kUnlimited);
}

TEST_F(SwapSpaceTest, WithoutSwapSpaceANewcomerWaitsForMemoryThatRests) {
  state_.limits.swap_bytes = 0;
  On(SessionArrived{1, 1});
  On(MemoryNeeded{1, 80});
  On(Runnable{1});
  On(Idle{1});
  SessionArrived newcomer = {2, 2};
  newcomer.estimate.persistent_bytes = 40;
  const std::vector<Action> actions = On(newcomer);
  EXPECT_EQ(Of<Queue>(actions).size(), 1u);
  EXPECT_EQ(Of<Reject>(actions).size(), 0u);
  EXPECT_EQ(Of<Admit>(On(SessionLeft{1})).size(), 1u);
}

TEST_F(SwapSpaceTest, WhoIsDismissedComesBackWithItsNextWork) {
  On(SessionArrived{1, 1});
  On(MemoryNeeded{1, 30});
  On(Runnable{1});
  EXPECT_FALSE(MayLeave(state_, Get(1)));
  EXPECT_TRUE(Of<SwapOut>(On(Dismissed{1})).empty()) << "it works";
  On(Idle{1});
  EXPECT_TRUE(MayLeave(state_, Get(1)));
  ASSERT_EQ(Of<Revoke>(On(Dismissed{1})).size(), 1u) << "it still has its turn";
  ASSERT_EQ(Of<SwapOut>(On(Switched{Get(1).lane, 1, 0})).size(), 1u);
  EXPECT_TRUE(Of<SwapOut>(On(Dismissed{1})).empty()) << "it is on its way";
  EXPECT_TRUE(Of<SwapIn>(On(Swapped{1, true, true})).empty()) << "it has nothing to do";
  EXPECT_EQ(Of<SwapIn>(On(Runnable{1})).size(), 1u);
  EXPECT_EQ(Of<Grant>(On(Swapped{1, false, true})).size(), 1u);
}

TEST_F(SwapSpaceTest, WorkMayComeForWhoIsDismissed) {
  On(SessionArrived{1, 1});
  On(MemoryNeeded{1, 30});
  ASSERT_EQ(Of<SwapOut>(On(Dismissed{1})).size(), 1u);
  On(Runnable{1});
  EXPECT_EQ(Of<SwapIn>(On(Swapped{1, true, true})).size(), 1u);
}

TEST_F(SwapSpaceTest, WhoCanNotLeaveStaysAndIsNotPaused) {
  On(SessionArrived{1, 1});
  On(MemoryNeeded{1, 30});
  ASSERT_EQ(Of<SwapOut>(On(Dismissed{1})).size(), 1u);
  On(Swapped{1, true, false, "the disk is full"});
  EXPECT_FALSE(Get(1).paused());
  EXPECT_EQ(Of<Grant>(On(Runnable{1})).size(), 1u);
}

TEST_F(SwapSpaceTest, WhoIsDismissedWhenItsDeviceIsLostIsNotPaused) {
  On(SessionArrived{1, 1});
  On(LaneNeeded{1, 30});
  On(Runnable{1});
  On(Idle{1});
  ASSERT_EQ(Of<Revoke>(On(Dismissed{1})).size(), 1u);
  On(DeviceLost{0});
  EXPECT_FALSE(Get(1).paused()) << "its memory can't leave";
  On(CapacityChanged{0, 100, 0, 0});
  EXPECT_EQ(Of<Grant>(On(Runnable{1})).size(), 1u);
}

TEST_F(SwapSpaceTest, RoomOnTheHostThatIsTakenBeforeTheBoundaryEndsADismissal) {
  state_.limits.swap_bytes = 50;
  On(SessionArrived{1, 1});
  On(MemoryNeeded{1, 30});
  On(Runnable{1});
  On(Idle{1});
  On(SessionArrived{2, 2});
  On(MemoryNeeded{2, 30});
  ASSERT_EQ(Of<Revoke>(On(Dismissed{1})).size(), 1u);
  ASSERT_EQ(Of<SwapOut>(On(Paused{2, true})).size(), 1u);
  EXPECT_TRUE(Of<SwapOut>(On(Switched{Get(1).lane, 1, 0})).empty());
  EXPECT_FALSE(Get(1).paused());
  EXPECT_EQ(Of<Grant>(On(Runnable{1})).size(), 1u);
}

TEST_F(SwapSpaceTest, NobodyIsDismissedWithoutSwapSpace) {
  state_.limits.swap_bytes = 20;
  On(SessionArrived{1, 1});
  On(MemoryNeeded{1, 30});
  EXPECT_FALSE(MayLeave(state_, Get(1)));
  EXPECT_TRUE(Of<SwapOut>(On(Dismissed{1})).empty());
}

// Room is made for all that it asks for: for what it had alone it would wait until others end.
TEST_F(SwapSpaceTest, WhoAsksForALaneFromTheHostComesBackWithIt) {
  On(SessionArrived{1, 1});
  On(MemoryNeeded{1, 10});
  On(Paused{1, true});
  On(Swapped{1, true, true});
  On(SessionArrived{2, 2});
  On(MemoryNeeded{2, 60});  // and rests
  On(Resumed{1});
  const std::vector<SwapOut> gone = Of<SwapOut>(On(LaneNeeded{1, 50}));
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].session, 2u);
  EXPECT_EQ(Of<SwapIn>(On(Swapped{2, true, true})).size(), 1u);
}

class OnItsWayInTest : public SwapSpaceTest {
 protected:
  // 1 has 10 bytes of its own and 20 of its lane, and is on the host; 2 keeps 50 on the device.
  OnItsWayInTest() {
    On(SessionArrived{1, 1});
    On(MemoryNeeded{1, 10});
    On(LaneNeeded{1, 20});
    const LaneId lane = Get(1).lane;
    On(Paused{1, true});
    On(Swapped{1, true, true});
    On(LaneShrunk{lane, 0});
    SessionArrived neighbour = {2, 2};
    neighbour.fixed = true;
    On(neighbour);
    On(MemoryNeeded{2, 50});
  }
  void ComesIn() {
    On(Resumed{1});
    On(Runnable{1});
    ASSERT_EQ(Get(1).place.residence, Residence::kComingIn);
  }
};

TEST_F(OnItsWayInTest, WhatASessionAskedForIsNotItsOwnWhenTheWayFails) {
  On(LaneNeeded{1, 40});
  ComesIn();
  EXPECT_TRUE(Of<AssignLane>(On(Swapped{1, false, false})).empty());
  EXPECT_EQ(Get(1).ephemeral_bytes, 20);
  EXPECT_EQ(Get(1).need, Need::kLane) << "it still waits for it";
  On(SessionMoved{1, 10});
  now_us_ += 2 * state_.limits.swap_slice_us;
  ASSERT_EQ(Of<SwapIn>(On(Timer{})).size(), 1u);
  On(Swapped{1, false, true});
  EXPECT_EQ(Get(1).ephemeral_bytes, 20) << "its new worker did not ask for more";
}

TEST_F(OnItsWayInTest, WhatAMovedSessionAskedForIsForgotten) {
  On(LaneNeeded{1, 40});
  ComesIn();
  On(SessionMoved{1, 10});
  EXPECT_EQ(Get(1).ephemeral_bytes, 20);
  EXPECT_TRUE(Of<AssignLane>(On(Swapped{1, false, true})).empty());
  EXPECT_EQ(Get(1).ephemeral_bytes, 20);
}

TEST_F(OnItsWayInTest, MemoryAskedForMeanwhileWaitsUntilItIsFree) {
  ComesIn();
  EXPECT_EQ(Of<Wait>(On(MemoryNeeded{1, 30})).size(), 1u);
  EXPECT_TRUE(Of<GrantMemory>(On(Swapped{1, false, true})).empty()) << "20 are free";
  EXPECT_EQ(Get(1).persistent_bytes, 10);
  EXPECT_EQ(Of<GrantMemory>(On(MemoryFreed{2, 10})).size(), 1u);
}

TEST_F(OnItsWayInTest, ALaneAskedForMeanwhileIsAsLargeAsAsked) {
  ComesIn();
  EXPECT_EQ(Of<Wait>(On(LaneNeeded{1, 35})).size(), 1u);
  const std::vector<AssignLane> lanes = Of<AssignLane>(On(Swapped{1, false, true}));
  ASSERT_EQ(lanes.size(), 1u);
  EXPECT_EQ(lanes[0].bytes, 35);
}

// The session that was there first is not refused for a later one, though the later one rests.
TEST_F(NoSwapSpaceTest, WhoCameEarlierWaitsForMemoryOfALaterOneThatRests) {
  On(Idle{2});
  EXPECT_EQ(Of<Wait>(On(MemoryNeeded{1, 20})).size(), 1u);
  for (int round = 0; round < 3; ++round) {
    now_us_ += 2 * state_.limits.standstill_us;
    EXPECT_EQ(Of<RefuseMemory>(On(Timer{})).size(), 0u);
  }
  EXPECT_NE(Sentence(Why(state_, 1, now_us_)).find("(--swap, 10 B) is used up"), std::string::npos);
  // The later one is told when it asks.
  EXPECT_EQ(Of<RefuseMemory>(On(MemoryNeeded{2, 20})).size(), 0u);
  now_us_ += 2 * state_.limits.standstill_us;
  const std::vector<RefuseMemory> refused = Of<RefuseMemory>(On(Timer{}));
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].session, 2u);
  EXPECT_EQ(Of<GrantMemory>(On(SessionLeft{2})).size(), 1u);
}

// Its worker is lost: what it waited for it asks for again, what was granted last it never had.
TEST_F(NoSwapSpaceTest, WhoMovesIsCountedByWhatItBringsAndAsksAgain) {
  On(MemoryNeeded{2, 20});
  On(Idle{2});
  On(SessionMoved{2, 40});
  EXPECT_EQ(Get(2).need, Need::kNone);
  EXPECT_EQ(Get(2).charged_bytes, 40);
  EXPECT_EQ(Of<GrantMemory>(On(SessionLeft{1})).size(), 0u) << "nobody asks";
  EXPECT_EQ(Of<GrantMemory>(On(MemoryNeeded{2, 20})).size(), 1u);
  On(SessionMoved{2, 100});
  EXPECT_EQ(Get(2).charged_bytes, 60) << "no more than it was granted";
}

}  // namespace
}  // namespace scheduler
