// Which session gets which lane, and which one gives way, one promise each; more in lanes_test.cc.
#include <gtest/gtest.h>

#include <vector>

#include "scheduler/core.h"
#include "scheduler/scheduler.h"
#include "tests/scheduler/actions.h"
#include "tests/scheduler/state_test.h"

namespace scheduler {
namespace {

class PlacesTest : public StateTest {
 protected:
  PlacesTest() : StateTest("fair") { On(CapacityChanged{0, 100}); }
};

TEST_F(PlacesTest, OfLanesThatAreLargeEnoughTheSmallestIsJoined) {
  On(Job(1, 0, 30));
  On(Job(2, 0, 40));
  On(Job(3, 0, 20));
  On(Job(4, 10, 25));  // with a lane of its own it does not fit
  EXPECT_EQ(Get(4).lane, Get(1).lane);
}

TEST_F(PlacesTest, WhoMovesToAnotherLaneTakesItsPlaceAlong) {
  state_.limits.lanes_max = 1;
  On(Job(1));
  On(Job(2));
  On(Runnable{1});
  On(Runnable{2});
  On(Progress{1, 1, 10'000});
  ASSERT_EQ(Get(1).lane, Get(2).lane);
  Core core;
  core.state = &state_;
  core.now_us = now_us_;
  TakeLane(&core, core.Find(1), {LaneChoice::kNew, 0, 10}, 10, false);
  EXPECT_EQ(Get(1).virtual_us, 10'000) << "as far ahead as it was";
}

// The worker may have handed the lane to a successor, and Switched is on its way. A session of
// another worker in that lane would be the second.
TEST_F(PlacesTest, ARevokedHolderTakesAnotherLaneWhenItHasHandedOver) {
  state_.limits.lanes_max = 2;
  On(Job(1));
  On(Job(2));
  On(Job(3));
  for (SessionId id = 1; id <= 3; ++id) On(LaneNeeded{id, 10});
  const SessionId mate = Get(2).lane == Get(1).lane ? 2 : 3;
  ASSERT_EQ(Get(mate).lane, Get(1).lane);
  On(Runnable{1});
  On(Runnable{mate});
  const LaneId lane = Get(1).lane;
  now_us_ += 10 * state_.limits.slice_us;
  On(Progress{1, 1, 10 * state_.limits.slice_us});
  ASSERT_TRUE(Get(1).revoked);
  On(Idle{1, true});
  EXPECT_TRUE(Of<AssignLane>(On(LaneNeeded{1, 30})).empty());
  EXPECT_EQ(state_.lanes.at(lane).holder, &Get(1));
  const std::vector<Action> actions = On(Switched{lane, 1, mate});
  EXPECT_EQ(state_.lanes.at(lane).holder, &Get(mate));
  ASSERT_EQ(Of<AssignLane>(actions).size(), 1u);
  EXPECT_EQ(Of<AssignLane>(actions)[0].session, 1u);
}

TEST_F(PlacesTest, WhenAllWaitForEachOtherWhoCameLastGoes) {
  for (SessionId id = 1; id <= 3; ++id) {
    On(Job(id));
    On(Runnable{id});
    On(MemoryNeeded{id, 30});
  }
  EXPECT_TRUE(Of<SwapOut>(On(MemoryNeeded{3, 20})).empty());
  EXPECT_TRUE(Of<SwapOut>(On(MemoryNeeded{2, 20})).empty());
  const std::vector<SwapOut> gone = Of<SwapOut>(On(MemoryNeeded{1, 20}));
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].session, 3u);
}

TEST_F(PlacesTest, NoGangIsGrantedOnADeviceThatIsLost) {
  state_.limits.lanes_max = 1;
  On(CapacityChanged{1, 100});
  On(Job(3));
  On(Runnable{3});
  SessionArrived rank = Job(1);
  rank.gang_size = 2;
  rank.job = 9;
  On(rank);
  On(Runnable{1});
  rank.session = 2;
  rank.device = 1;
  On(rank);
  On(Runnable{2});
  now_us_ += 1'000'000;
  On(Progress{3, 1, 1'000'000});
  ASSERT_EQ(state_.assembling, 9u) << "3 is to leave its lane for it";
  EXPECT_TRUE(Of<Grant>(On(DeviceLost{0})).empty());
  EXPECT_EQ(Of<Grant>(On(CapacityChanged{0, 100})).size(), 2u);
}

// Its worker has let go of the lane before the order to go to the host arrived, and cannot obey it.
TEST_F(PlacesTest, ALaneThatAnEvictedSessionPassesOnIsNotTheSessionsWhenItStays) {
  On(SessionAdopted{{1, 1}, 10, 20, 5, 20, true});
  On(SessionAdopted{{2, 2}, 60, 0, 6, 0, true});
  for (const SessionId id : {1, 2}) On(Runnable{id});
  On(MemoryNeeded{1, 30});
  ASSERT_EQ(Get(1).need, Need::kPersistent) << "it waits for memory inside its iteration";
  const std::vector<Action> actions = On(Paused{1, true});
  ASSERT_EQ(Of<SwapOut>(actions).size(), 1u);
  ASSERT_TRUE(Of<SwapOut>(actions)[0].with_lane);
  On(Switched{5, 1, 0});
  On(Swapped{1, true, false, "it has begun no iteration"});
  EXPECT_FALSE(Get(1).granted);
  On(Resumed{1});
  EXPECT_EQ(Of<Grant>(On(SessionLeft{2})).size(), 1u) << "there is memory for it now";
}

}  // namespace
}  // namespace scheduler
