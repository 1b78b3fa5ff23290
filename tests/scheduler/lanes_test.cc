// Lanes and memory: algorithm 2.1 against an exhaustive search, and each way to make room.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "scheduler/core.h"
#include "scheduler/scheduler.h"
#include "tests/harness/seed.h"
#include "tests/scheduler/actions.h"
#include "tests/scheduler/state_test.h"

namespace scheduler {
namespace {

class LanesTest : public StateTest {
 protected:
  explicit LanesTest(const std::string& policy = "fair") : StateTest(policy) {
    state_.limits.swap_slice_us = 1'000;
    On(CapacityChanged{0, 100});
  }
};

TEST_F(LanesTest, ANewLaneWhileThereIsRoomThenTheBestMatchThenTheSmallestGrows) {
  On(Job(1, 10, 20));
  On(Job(2, 10, 30));
  EXPECT_NE(Get(1).lane, Get(2).lane);
  On(Job(3, 10, 25));  // 70 are used: it joins the one that is large enough
  EXPECT_EQ(Get(3).lane, Get(2).lane);
  const std::vector<Action> actions = On(Job(4, 0, 35));  // 20 are left: the smallest grows
  EXPECT_EQ(Get(4).lane, Get(1).lane);
  ASSERT_EQ(Of<ResizeLane>(actions).size(), 1u);
  EXPECT_EQ(Of<ResizeLane>(actions)[0].bytes, 35);
}

TEST_F(LanesTest, LanesNeverSpanUsers) {
  On(Job(1, 10, 50));
  SessionArrived other = Job(2, 10, 40);
  other.user = 7;
  EXPECT_EQ(Of<Queue>(On(other)).size(), 1u);  // it fits into the lane of another user's
  other = Job(3, 10, 20);
  other.user = 7;
  On(SessionLeft{2});
  On(other);
  EXPECT_NE(Get(3).lane, Get(1).lane);
}

TEST_F(LanesTest, LanesMergeToLetAnotherJobIn) {
  On(Job(1, 10, 30));
  On(Job(2, 10, 30));
  std::vector<Action> actions = On(Job(3, 40, 30));  // 80 are used; with one lane it fits
  const std::vector<ResizeLane> resized = Of<ResizeLane>(actions);
  ASSERT_EQ(resized.size(), 1u);
  EXPECT_EQ(resized[0].bytes, 0);
  EXPECT_EQ(Get(3).phase, Phase::kQueued);
  EXPECT_TRUE(Of<Admit>(On(LaneShrunk{resized[0].lane, 30})).empty()) << "an earlier order's";
  actions = On(LaneShrunk{resized[0].lane, 0});
  EXPECT_EQ(Of<Admit>(actions).size(), 1u);
  EXPECT_EQ(Get(1).lane, Get(2).lane);
  EXPECT_EQ(Get(3).lane, Get(1).lane);
}

TEST_F(LanesTest, AMergeWaitsForTheBoundary) {
  On(Job(1, 10, 30));
  On(Job(2, 10, 30));
  On(Runnable{1});
  On(Runnable{2});
  ASSERT_TRUE(Get(1).granted && Get(2).granted);
  std::vector<Action> actions = On(Job(3, 40, 30));
  ASSERT_EQ(Of<Revoke>(actions).size(), 1u);
  EXPECT_EQ(Of<ResizeLane>(actions).size(), 0u);
  const Revoke revoke = Of<Revoke>(actions)[0];
  actions = On(Switched{revoke.lane, revoke.session, 0});
  EXPECT_EQ(Of<AssignLane>(actions).size(), 1u);
  EXPECT_EQ(Of<ResizeLane>(actions).size(), 1u);
}

TEST_F(LanesTest, WhoAsksForItsOwnLaneAgainHasItThoughItCloses) {
  On(Job(1, 5, 30));
  On(Job(2, 5, 40));
  ASSERT_NE(Get(1).lane, Get(2).lane);
  On(LaneNeeded{1, 30});
  On(Runnable{1});
  On(Job(3));
  On(MemoryNeeded{3, 40});  // the lanes are to be one, when 1 comes to its boundary
  ASSERT_TRUE(state_.lanes.at(Get(1).lane).closing);
  const std::vector<Action> actions = On(LaneNeeded{1, 30});
  ASSERT_EQ(Of<AssignLane>(actions).size(), 1u);
  EXPECT_TRUE(Of<AssignLane>(actions)[0].answer);
  EXPECT_EQ(Of<AssignLane>(actions)[0].lane, Get(1).lane);
}

TEST_F(LanesTest, GrowthWaitsUntilSomebodyGoes) {
  On(Job(1));
  On(Job(2));
  On(MemoryNeeded{1, 60});
  const std::vector<Action> actions = On(MemoryNeeded{2, 50});
  EXPECT_EQ(Of<GrantMemory>(actions).size(), 0u);
  EXPECT_EQ(Of<Wait>(actions).size(), 1u);
}

TEST_F(LanesTest, WorkThatComesDuringASwapBeginsWhenTheSwapFails) {
  SessionArrived other = Job(1, 0, 10);
  other.user = 7;  // its lane can't be merged away
  On(other);
  On(LaneNeeded{1, 10});
  On(Job(2, 40, 20));
  On(LaneNeeded{2, 20});
  On(Runnable{2});
  On(Idle{2, true});
  On(MemoryNeeded{2, 80});
  ASSERT_TRUE(Get(2).granted && !Get(2).inside);
  const std::vector<SwapOut> swaps = Of<SwapOut>(On(MemoryNeeded{1, 70}));  // nobody gets anywhere
  ASSERT_EQ(swaps.size(), 1u);
  ASSERT_TRUE(swaps[0].session == 2 && !swaps[0].with_lane);
  On(Runnable{2});
  EXPECT_FALSE(Get(2).inside);
  On(Swapped{2, true, false, "the disk is full"});
  EXPECT_TRUE(Get(2).inside);  // or its lane would be another's while it works there
}

TEST_F(LanesTest, AnAdoptedLaneCountsWithWhatTheKeeperHasOfIt) {
  SessionAdopted adopted;
  adopted.arrived = Job(1);
  adopted.lane = 5;
  adopted.ephemeral_bytes = adopted.lane_bytes = 20;
  adopted.granted = true;
  On(adopted);
  On(LaneFound{5, 60});
  On(LaneFound{5, 10});
  On(LaneFound{6, 99});
  EXPECT_EQ(state_.lanes.at(5).bytes, 60);
  EXPECT_EQ(state_.lanes.size(), 1u);
  On(Job(2));
  On(Idle{1});
  EXPECT_TRUE(Of<GrantMemory>(On(MemoryNeeded{2, 70})).empty());
  On(Switched{5, 1, 0});
  EXPECT_EQ(Of<GrantMemory>(On(LaneShrunk{5, 20})).size(), 1u) << "it shrank to make room";
}

// An earlier lanewayd has revoked the lane: the holder's worker may have passed it on by itself.
TEST_F(LanesTest, AnAdoptedHolderThatWasRevokedKeepsItsLaneUntilSwitchedComes) {
  for (const SessionId id : {1, 2}) {
    SessionAdopted adopted;
    adopted.arrived = Job(id);
    adopted.lane = 5;  // without memory, so that none is inside
    adopted.granted = adopted.revoked = id == 1;
    On(adopted);
  }
  On(Runnable{2});
  const std::vector<Action> actions = On(LaneNeeded{1, 40});
  EXPECT_TRUE(Of<AssignLane>(actions).empty());
  EXPECT_TRUE(Of<Grant>(actions).empty()) << "of the lane that session 2 may have by now";
  On(Switched{5, 1, 2});
  EXPECT_TRUE(Get(2).granted);
  EXPECT_EQ(Get(1).need, Need::kNone) << "its request was answered";
}

TEST_F(LanesTest, WhoCouldNotBeEvictedIsTriedAgain) {
  On(Job(1, 40, 0));
  ASSERT_EQ(Of<SwapOut>(On(Paused{1, true})).size(), 1u);
  EXPECT_TRUE(Of<SwapOut>(On(Swapped{1, true, false, "no worker has it now"})).empty());
  const int64_t due_us = NextTimerUs(state_);
  EXPECT_EQ(due_us, now_us_ + state_.limits.swap_slice_us);
  now_us_ = due_us - 1;
  ASSERT_EQ(Of<SwapOut>(On(Timer{})).size(), 1u);
  On(Swapped{1, true});
  On(Resumed{1});
  EXPECT_EQ(Of<SwapIn>(On(Runnable{1})).size(), 1u) << "what failed before does not keep it away";
}

TEST_F(LanesTest, AnEstimateRefusesNobodyAndGivesWayToWhatIsAskedFor) {
  On(Job(1, 30, 60));
  // More than beside the lane of before, which it has not asked for this time.
  EXPECT_TRUE(Of<RefuseMemory>(On(MemoryNeeded{1, 70})).empty());
  const std::vector<GrantMemory> granted = Of<GrantMemory>(On(LaneShrunk{Get(1).lane, 0}));
  ASSERT_EQ(granted.size(), 1u);
  EXPECT_EQ(granted[0].bytes, 70);
}

TEST_F(LanesTest, WhatWasLearnedIsKeptFreeUntilTheSessionIsKnown) {
  SessionArrived known = Job(1, 30, 60);
  known.estimate.total_us = 1'000;
  On(known);
  On(Runnable{1});
  EXPECT_EQ(Of<Queue>(On(Job(2, 20, 0))).size(), 1u);
  On(Progress{1, 0, 1'000});
  EXPECT_EQ(Get(2).phase, Phase::kQueued);
  On(MemoryNeeded{1, 10});
  const std::vector<Admit> admitted = Of<Admit>(On(Progress{1, 3, 0}));
  ASSERT_EQ(admitted.size(), 1u);
  EXPECT_EQ(Get(1).charged_bytes, 10);
}

TEST_F(LanesTest, ATurnWithoutWorkIsNoTurn) {
  state_.limits.lanes_max = 1;
  On(Job(1));
  On(Job(2));
  On(Runnable{1});
  On(Runnable{2});
  const int64_t since_us = Get(2).waiting_us;
  On(Switched{Get(1).lane, 1, 2});
  ASSERT_TRUE(Get(2).granted);
  On(Switched{Get(2).lane, 2, 0});  // it was to go before it began
  On(Idle{1});
  EXPECT_EQ(Get(2).granted ? Get(2).waited_since_us : Get(2).waiting_us, since_us);
}

TEST_F(LanesTest, ANewHolderIsFollowedByNobodyWhoWasToFollowTheOldOne) {
  state_.limits.lanes_max = 1;
  for (SessionId id = 1; id <= 3; ++id) {
    On(Job(id));
    On(Runnable{id});
  }
  std::vector<Successors> told = Of<Successors>(On(Paused{1}));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].sessions, (std::vector<SessionId>{2, 3}));
  On(Switched{told[0].lane, 1, 2});
  told = Of<Successors>(On(Paused{2}));  // the same list again is news to the worker
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].sessions, (std::vector<SessionId>{3}));
}

TEST_F(LanesTest, MemoryFailsOnlyForAJobThatAloneIsTooLarge) {
  On(Job(1));
  std::vector<Action> actions = On(MemoryNeeded{1, 101});
  ASSERT_EQ(Of<RefuseMemory>(actions).size(), 1u);
  EXPECT_NE(Of<RefuseMemory>(actions)[0].reason.find("the device has room for 100 B"),
            std::string::npos);
  On(LimitChanged{1, 40});
  actions = On(LaneNeeded{1, 41});
  ASSERT_EQ(Of<RefuseMemory>(actions).size(), 1u);
  EXPECT_NE(Of<RefuseMemory>(actions)[0].reason.find("its limit is 40 B"), std::string::npos);
}

class FifoLanesTest : public LanesTest {
 protected:
  FifoLanesTest() : LanesTest("fifo") {}
};

TEST_F(FifoLanesTest, WhenAllWaitForEachOtherTheYoungestIsSwappedOut) {
  for (SessionId id = 1; id <= 3; ++id) {
    On(Job(id));
    On(Runnable{id});
    On(MemoryNeeded{id, 30});
  }
  // The youngest asks first, then the others: only now nobody gets anywhere.
  EXPECT_EQ(Of<SwapOut>(On(MemoryNeeded{3, 20})).size(), 0u);
  EXPECT_EQ(
      Of<SwapOut>(On(MemoryNeeded{2, 20})).size() + Of<SwapOut>(On(MemoryNeeded{1, 20})).size(),
      1u);
  EXPECT_EQ(Get(3).place.residence, Residence::kGoingOut);
  const std::vector<Action> actions = On(Swapped{3, true});
  ASSERT_GE(Of<GrantMemory>(actions).size(), 1u);
  EXPECT_EQ(Of<GrantMemory>(actions)[0].session, 1u);
}

TEST_F(FifoLanesTest, TheLeastRecentlyGrantedIdleOneIsSwappedFirst) {
  for (SessionId id = 1; id <= 3; ++id) {
    On(Job(id));
    On(MemoryNeeded{id, 30});
  }
  for (const SessionId id : {2, 1, 3}) {
    On(Runnable{id});
    ASSERT_TRUE(Get(id).granted);
    On(Idle{id});
    On(Switched{Get(id).lane, id, 0});
  }
  On(Job(4));
  On(Runnable{4});
  const std::vector<Action> actions = On(MemoryNeeded{4, 20});
  ASSERT_EQ(Of<SwapOut>(actions).size(), 1u);
  EXPECT_EQ(Of<SwapOut>(actions)[0].session, 2u);
  EXPECT_EQ(Of<GrantMemory>(On(Swapped{2, true})).size(), 1u);
}

class SrtfLanesTest : public LanesTest {
 protected:
  SrtfLanesTest() : LanesTest("srtf") { state_.limits.starvation_us = 10'000; }
  SessionArrived Lasting(SessionId id, int64_t total_us) {
    SessionArrived about = Job(id, 60);
    about.estimate.total_us = total_us;
    return about;
  }
};

TEST_F(SrtfLanesTest, WhoWaitsForMemoryStarvesNeither) {
  On(Lasting(1, 1'000'000'000));
  On(MemoryNeeded{1, 60});
  On(Runnable{1});
  now_us_ += 2'000;
  On(Lasting(2, 1'000'000));  // shorter: the long one goes to the host
  On(Switched{Get(1).lane, 1, 0});
  On(Swapped{1, true});
  ASSERT_EQ(Get(2).phase, Phase::kAdmitted);
  On(Lasting(3, 1'000'000));
  now_us_ += 10'000;
  const std::vector<Action> actions = On(SessionLeft{2});
  ASSERT_EQ(Of<SwapIn>(actions).size(), 1u);
  EXPECT_EQ(Of<SwapIn>(actions)[0].session, 1u);
  On(Swapped{1, false});
  now_us_ += 2'000;
  EXPECT_EQ(Of<Revoke>(On(Timer{})).size(), 0u) << "it is left its turn";
}

TEST_F(FifoLanesTest, OverstayIsReportedOnce) {
  state_.limits.iteration_max_us = 100;
  On(Job(1));
  On(Runnable{1});
  On(Paused{1});
  now_us_ += 200;
  EXPECT_EQ(Of<Report>(On(Timer{})).size(), 1u);
  EXPECT_EQ(Of<Report>(On(Timer{})).size(), 0u);
  EXPECT_EQ(Of<Report>(On(CapacityChanged{0, 100})).size(), 0u) << "at whatever it is looked at";
}

// Whether any partition of all jobs into lanes is safe, each lane as large as its largest need.
bool AnyPartitionFits(const std::vector<std::pair<int64_t, int64_t>>& jobs, int64_t capacity) {
  int64_t persistent = 0;
  int64_t largest = 0;  // one lane for all is the smallest sum of lanes
  for (const std::pair<int64_t, int64_t>& job : jobs) {
    persistent += job.first;
    largest = std::max(largest, job.second);
  }
  return persistent + largest <= capacity;
}

// Algorithm 2.1 finds a lane whenever opening, joining or growing any one would be safe.
TEST(LaneAssignmentTest, FindsALaneWheneverOneStepIsSafe) {
  std::mt19937_64 random(harness::Seed());
  for (int round = 0; round < 3'000; ++round) {
    State state(round % 2 == 0 ? "fair" : "fifo");
    state.limits.sessions_max = 100;
    OnEvent(&state, CapacityChanged{0, 100}, 0);
    for (SessionId id = 1; id <= 8; ++id) {
      const int64_t persistent = static_cast<int64_t>(random() % 20);
      const int64_t ephemeral = static_cast<int64_t>(random() % 40);
      const Device& device = state.devices.at(0);
      bool safe = device.free_bytes() >= persistent + ephemeral;
      for (const std::pair<const LaneId, Lane>& entry : state.lanes) {
        if (entry.second.shrinking_to >= 0 || entry.second.closing) continue;
        const int64_t more = std::max<int64_t>(0, ephemeral - entry.second.bytes);
        safe = safe || device.free_bytes() >= persistent + more;
      }
      Session probe;
      probe.about = Job(1000, persistent, ephemeral);
      ASSERT_EQ(FindLane(state, probe, persistent, ephemeral).kind != LaneChoice::kNone, safe);
      OnEvent(&state, Job(id, persistent, ephemeral), id);
      ASSERT_GE(device.free_bytes(), 0);
    }
  }
}

// With merging, a job is admitted exactly when some partition of all jobs into lanes is safe.
TEST(LaneAssignmentTest, AdmitsWheneverSomePartitionIsSafe) {
  std::mt19937_64 random(harness::Seed());
  for (int round = 0; round < 2'000; ++round) {
    State state("fair");
    state.limits.sessions_max = 100;
    OnEvent(&state, CapacityChanged{0, 100}, 0);
    std::vector<std::pair<int64_t, int64_t>> jobs;
    for (SessionId id = 1; id <= 8; ++id) {
      jobs.push_back({random() % 20, random() % 40});
      SessionArrived about = Job(id, jobs.back().first, jobs.back().second);
      std::vector<Action> actions = OnEvent(&state, about, id);
      while (true) {  // what shrinks is done at once
        const std::vector<ResizeLane> resized = Of<ResizeLane>(actions);
        actions.clear();
        for (const ResizeLane& resize : resized) {
          const std::vector<Action> more =
              OnEvent(&state, LaneShrunk{resize.lane, resize.bytes}, id);
          actions.insert(actions.end(), more.begin(), more.end());
        }
        if (actions.empty()) break;
      }
      for (const std::pair<const SessionId, Session>& entry : state.sessions) {
        ASSERT_NE(entry.second.place.residence, Residence::kHost);
      }
      const bool admitted = state.sessions.at(id).phase == Phase::kAdmitted;
      bool others_rest = false;  // idle ones are swapped out for it: not what is asked here
      for (const std::pair<const SessionId, Session>& entry : state.sessions) {
        others_rest = others_rest || entry.second.place.residence == Residence::kGoingOut;
      }
      if (others_rest) break;
      ASSERT_EQ(admitted, AnyPartitionFits(jobs, 100)) << "job " << id;
      if (!admitted) break;
    }
  }
}

}  // namespace
}  // namespace scheduler
