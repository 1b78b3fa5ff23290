// Which session gets memory and a place, is passed over, or keeps what it has: one promise each.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scheduler/scheduler.h"
#include "tests/scheduler/actions.h"
#include "tests/scheduler/state_test.h"

namespace scheduler {
namespace {

class MemoryTest : public StateTest {
 protected:
  explicit MemoryTest(const std::string& policy = "fifo") : StateTest(policy) {
    On(CapacityChanged{0, 100});
  }
  // Memory that never leaves the device.
  void Hold(SessionId id, int64_t bytes) {
    SessionArrived about = Job(id);
    about.fixed = true;
    On(about);
    On(MemoryNeeded{id, bytes});
  }
};

TEST_F(MemoryTest, NoNewcomerTakesWhatIsBeingFreedForWhoWaits) {
  Hold(1, 60);
  On(Job(2));
  On(MemoryNeeded{2, 10});
  ASSERT_EQ(Of<Wait>(On(MemoryNeeded{2, 50})).size(), 1u);
  EXPECT_EQ(Of<Queue>(On(Job(3, 20))).size(), 1u) << "30 are free, but 2 waits for them";
  const std::vector<Action> actions = On(MemoryFreed{1, 20});
  ASSERT_EQ(Of<GrantMemory>(actions).size(), 1u);
  EXPECT_EQ(Of<GrantMemory>(actions)[0].session, 2u);
  EXPECT_EQ(Of<Admit>(On(MemoryFreed{1, 40})).size(), 1u);
}

// A lane closes when its holder comes to a boundary. A holder that waits for memory inside an
// iteration reaches none, so memory of other sessions has to go.
TEST_F(MemoryTest, AHolderThatWaitsInsideItsIterationKeepsItsLane) {
  On(Job(3));
  On(MemoryNeeded{3, 20});
  On(Job(1));
  On(LaneNeeded{1, 40});
  On(LaneNeeded{1, 10});
  ASSERT_EQ(Of<Grant>(On(Runnable{1})).size(), 1u);
  ASSERT_TRUE(Get(1).inside);
  now_us_ += 2 * state_.limits.swap_slice_us;
  On(Job(2));
  std::vector<Action> actions = On(MemoryNeeded{2, 70});
  ASSERT_EQ(Of<Revoke>(actions).size(), 1u) << "30 of its lane are not needed";
  ASSERT_EQ(Of<SwapOut>(actions).size(), 0u) << "and with them there is enough";
  actions = On(MemoryNeeded{1, 45});
  EXPECT_FALSE(state_.lanes.at(Get(1).lane).closing);
  ASSERT_EQ(Of<SwapOut>(actions).size(), 1u);
  EXPECT_EQ(Of<SwapOut>(actions)[0].session, 3u);
  EXPECT_EQ(Of<GrantMemory>(On(Swapped{3, true, true})).size(), 1u);
}

TEST_F(MemoryTest, ALimitBelowWhatItWaitsForFailsTheRequest) {
  Hold(1, 60);
  On(Job(2));
  On(MemoryNeeded{2, 10});
  On(MemoryNeeded{2, 50});
  EXPECT_TRUE(Of<RefuseMemory>(On(LimitChanged{2, 60})).empty()) << "it may have as much";
  const std::vector<RefuseMemory> refused = Of<RefuseMemory>(On(LimitChanged{2, 59}));
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_NE(refused[0].reason.find("its limit is 59 B"), std::string::npos);
  EXPECT_TRUE(Of<GrantMemory>(On(SessionLeft{1})).empty()) << "it waits no more";
}

// Nothing is done to make room, and it takes nothing from those who wait.
TEST_F(MemoryTest, WhoDoesNotWaitIsRefusedWhereThereIsNoRoomNow) {
  Hold(1, 60);
  On(Job(2));
  const MemoryNeeded much{2, 50, false}, some{2, 10, false};
  std::vector<Action> actions = On(much);
  ASSERT_EQ(actions.size(), 1u);
  ASSERT_EQ(Of<RefuseMemory>(actions).size(), 1u);
  EXPECT_FALSE(Of<RefuseMemory>(actions)[0].waited);
  EXPECT_EQ(Of<GrantMemory>(On(some)).size(), 1u);
  On(Job(3));
  ASSERT_EQ(Of<Wait>(On(MemoryNeeded{3, 35})).size(), 1u);
  EXPECT_EQ(Of<RefuseMemory>(On(some)).size(), 1u) << "the other waits for the rest";
}

TEST_F(MemoryTest, WhoDoesNotWaitHasItsLimit) {
  On(Job(1));
  On(LimitChanged{1, 20});
  EXPECT_EQ(Of<RefuseMemory>(On(MemoryNeeded{1, 21, false})).size(), 1u);
  EXPECT_EQ(Of<GrantMemory>(On(MemoryNeeded{1, 20, false})).size(), 1u);
}

TEST_F(MemoryTest, ALimitBelowTheLaneItWaitsForFailsTheRequest) {
  Hold(1, 60);
  On(Job(2));
  On(MemoryNeeded{2, 10});
  ASSERT_EQ(Of<Wait>(On(LaneNeeded{2, 50})).size(), 1u);
  EXPECT_TRUE(Of<RefuseMemory>(On(LimitChanged{2, 60})).empty());
  EXPECT_EQ(Of<RefuseMemory>(On(LimitChanged{2, 59})).size(), 1u);
}

TEST_F(MemoryTest, AUsersMemoryIsBoundedAndNobodyElsesIs) {
  On(UserChanged{7, 100, 50});
  SessionArrived first = Job(1), second = Job(2), other = Job(3);
  first.user = second.user = 7;
  On(first);
  On(second);
  On(other);
  EXPECT_EQ(Of<GrantMemory>(On(MemoryNeeded{1, 30})).size(), 1u);
  EXPECT_EQ(Of<GrantMemory>(On(MemoryNeeded{2, 20})).size(), 1u) << "all that it may have";
  EXPECT_EQ(Of<GrantMemory>(On(MemoryNeeded{3, 40})).size(), 1u);
  EXPECT_TRUE(Of<GrantMemory>(On(MemoryNeeded{2, 10})).empty()) << "10 are free, not for it";
  EXPECT_LE(state_.users.at(7).used_bytes.at(0), 50);
}

TEST_F(MemoryTest, AUsersSessionsAreBoundedAndNobodyElsesAre) {
  On(UserChanged{7, 100, 0, 1});
  for (const SessionId id : {1, 2, 3}) {
    SessionArrived about = Job(id);
    about.user = id == 3 ? 8 : 7;
    EXPECT_EQ(Of<Admit>(On(about)).size(), id == 2 ? 0u : 1u) << id;
  }
  const std::vector<Admit> admitted = Of<Admit>(On(SessionLeft{1}));
  ASSERT_EQ(admitted.size(), 1u);
  EXPECT_EQ(admitted[0].session, 2u);
}

TEST_F(MemoryTest, WhatOneHasOnTheHostIsGivenBackWithIt) {
  state_.limits.swap_bytes = 20;
  for (SessionId id = 1; id <= 5; ++id) {
    On(Job(id));
    On(MemoryNeeded{id, 15});
    ASSERT_EQ(Of<SwapOut>(On(Paused{id, true})).size(), 1u);
    if (id % 2 == 0) On(Swapped{id, true});
    EXPECT_EQ(state_.swapped_bytes, 15);
    On(SessionLeft{id});  // from the host, or on its way there
    EXPECT_EQ(state_.swapped_bytes, 0);
  }
}

// Blocked inside its iteration, it takes its lane's bytes along.
TEST_F(MemoryTest, SwapSpaceHoldsTheLaneOfWhoIsInsideToo) {
  state_.limits.swap_bytes = 39;
  On(Job(1));
  On(MemoryNeeded{1, 45});
  On(Job(2));
  On(MemoryNeeded{2, 20});
  On(LaneNeeded{2, 20});
  On(Runnable{2});
  ASSERT_TRUE(Get(2).inside);
  On(MemoryNeeded{2, 30});
  EXPECT_TRUE(Of<SwapOut>(On(MemoryNeeded{1, 30})).empty()) << "40 bytes into 39";
  state_.limits.swap_bytes = 40;
  const std::vector<SwapOut> gone = Of<SwapOut>(On(Runnable{1}));
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_TRUE(gone[0].session == 2 && gone[0].with_lane);
  EXPECT_EQ(state_.swapped_bytes, 40);
}

// What it took along is given back, not what it asked for meanwhile.
TEST_F(MemoryTest, WhoComesBackWithALargerLaneGivesBackWhatItHadOnTheHost) {
  Hold(1, 45);
  On(Job(2));
  On(MemoryNeeded{2, 20});
  On(LaneNeeded{2, 20});
  On(Runnable{2});
  On(LaneNeeded{2, 60});
  ASSERT_EQ(Of<SwapOut>(On(MemoryNeeded{1, 30})).size(), 1u);
  On(Swapped{2, true, true});
  EXPECT_EQ(state_.swapped_bytes, 40);
  ASSERT_EQ(Of<SwapIn>(On(SessionLeft{1})).size(), 1u);
  EXPECT_EQ(state_.swapped_bytes, 40);
  EXPECT_EQ(Of<AssignLane>(On(Swapped{2, false, true})).size(), 1u);
  EXPECT_EQ(Get(2).ephemeral_bytes, 60);
  EXPECT_EQ(state_.swapped_bytes, 0);
}

TEST_F(MemoryTest, WhatIsFreedOnTheWayToTheHostIsNotCountedThere) {
  On(Job(1));
  On(MemoryNeeded{1, 15});
  On(Paused{1, true});
  ASSERT_EQ(state_.swapped_bytes, 15);
  On(MemoryFreed{1, 5});
  EXPECT_EQ(state_.swapped_bytes, 10);
}

TEST_F(MemoryTest, ADeviceThatIsLostGivesNoMemory) {
  On(Job(1));
  On(DeviceLost{0});
  EXPECT_EQ(Of<Wait>(On(MemoryNeeded{1, 15})).size(), 1u);
  EXPECT_EQ(Of<GrantMemory>(On(CapacityChanged{0, 100})).size(), 1u);
}

// Its lane was to become smaller meanwhile.
TEST_F(MemoryTest, WhoWasRevokedOnItsWayBackGoesAtItsNextBoundary) {
  Hold(1, 55);
  On(Job(5));
  On(LaneNeeded{5, 30});
  On(Job(2));
  On(MemoryNeeded{2, 10});
  On(LaneNeeded{2, 20});
  ASSERT_EQ(Get(2).lane, Get(5).lane);
  On(Runnable{2});
  On(MemoryNeeded{2, 10});
  ASSERT_EQ(Of<SwapOut>(On(MemoryNeeded{1, 10})).size(), 1u);
  On(Swapped{2, true, true});
  ASSERT_EQ(Of<SwapIn>(On(MemoryFreed{1, 30})).size(), 1u);
  On(SessionLeft{5});
  On(Job(3));
  EXPECT_EQ(Of<Revoke>(On(MemoryNeeded{3, 20})).size(), 1u);
  const std::vector<Action> actions = On(Swapped{2, false, true});
  EXPECT_EQ(Of<Grant>(actions).size(), 1u);
  ASSERT_EQ(Of<Revoke>(actions).size(), 1u) << "the first one reached nobody";
  EXPECT_EQ(Of<Revoke>(actions)[0].session, 2u);
}

class SrtfMemoryTest : public MemoryTest {
 protected:
  SrtfMemoryTest() : MemoryTest("srtf") { state_.limits.starvation_us = 10'000; }
  SessionArrived Lasting(SessionId id, int64_t bytes, int64_t total_us) {
    SessionArrived about = Job(id, bytes);
    about.estimate.total_us = total_us;
    return about;
  }
};

TEST_F(SrtfMemoryTest, MemoryStaysForASliceWhoeverStarves) {
  state_.limits.swap_slice_us = 100'000;
  On(Lasting(1, 60, 1'000'000));
  On(MemoryNeeded{1, 60});
  On(Runnable{1});
  const int64_t since_us = Get(1).resident_us;
  On(Lasting(2, 60, 1'000'000'000));      // longer: it has to starve first
  const CapacityChanged look = {0, 100};  // it changes nothing
  EXPECT_TRUE(Of<Revoke>(At(since_us + 50'000, look)).empty());
  EXPECT_TRUE(Of<Revoke>(At(since_us + 99'999, look)).empty());
  EXPECT_EQ(Of<Revoke>(At(since_us + 100'000, look)).size(), 1u);
}

TEST_F(SrtfMemoryTest, WhoHasWaitedForItsTurnKeepsItForASlice) {
  state_.limits.swap_slice_us = 1'000;
  On(Lasting(1, 0, 1'000'000));
  On(Lasting(2, 60, 2'000'000));
  On(MemoryNeeded{2, 60});
  On(Runnable{1});
  On(Runnable{2});
  On(Lasting(3, 60, 1'000'000'000));  // waits for the memory of 2
  const std::vector<Revoke> revoked = Of<Revoke>(At(25'000, Timer{}));
  ASSERT_EQ(revoked.size(), 1u) << "2 starves";
  EXPECT_EQ(revoked[0].session, 1u);
  std::vector<Action> actions = On(Switched{revoked[0].lane, 1, 2});
  ASSERT_TRUE(Get(2).granted);
  const int64_t until_us = Get(2).promised_us;
  EXPECT_EQ(until_us, now_us_ + state_.limits.slice_us);
  EXPECT_TRUE(Of<Revoke>(actions).empty()) << "3 starves, too";
  EXPECT_TRUE(Of<Revoke>(At(until_us - 1, Timer{})).empty());
  EXPECT_EQ(Of<Revoke>(At(until_us, Timer{})).size(), 1u);
}

class PackMemoryTest : public MemoryTest {
 protected:
  PackMemoryTest() : MemoryTest("pack") {}
};

TEST_F(PackMemoryTest, NewcomersPassWhoWasNeverHereAndNotWhoComesBack) {
  for (const bool was_here : {false, true}) {
    Hold(1, 40);
    if (was_here) {
      On(Job(2));
      On(MemoryNeeded{2, 60});
      On(Runnable{2});
      const LaneId lane = Get(2).lane;
      On(Paused{2, true});
      On(Switched{lane, 2, 0});
      On(Swapped{2, true});
      On(MemoryNeeded{1, 30});
      EXPECT_TRUE(Of<SwapIn>(On(Resumed{2})).empty()) << "60 bytes into 30";
    } else {
      On(MemoryNeeded{1, 30});
      EXPECT_EQ(Of<Queue>(On(Job(2, 60))).size(), 1u);
    }
    EXPECT_EQ(Of<Admit>(On(Job(3, 20))).size(), was_here ? 0u : 1u);
    On(SessionLeft{3});
    const std::vector<Action> actions = On(MemoryFreed{1, 30});
    EXPECT_EQ(Of<SwapIn>(actions).size(), was_here ? 1u : 0u);
    EXPECT_EQ(Of<Admit>(actions).size(), was_here ? 0u : 1u);
    On(SessionLeft{2});
    On(SessionLeft{1});
  }
}

}  // namespace
}  // namespace scheduler
