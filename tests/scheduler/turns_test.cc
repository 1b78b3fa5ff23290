// Whose turn it is, event by event: what a policy's order means when sessions stop and come back.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "scheduler/policies.h"
#include "scheduler/scheduler.h"
#include "tests/scheduler/actions.h"
#include "tests/scheduler/state_test.h"

namespace scheduler {
namespace {

class TurnsTest : public StateTest {
 protected:
  explicit TurnsTest(const std::string& policy = "fifo") : StateTest(policy) {
    state_.limits.lanes_max = 1;
  }
  void Add(const SessionArrived& about) {
    On(about);
    On(Runnable{about.session});
  }
  // The holder has had the device for so long, and goes on.
  void Serve(SessionId id, int64_t busy_us) {
    now_us_ += busy_us;
    ASSERT_TRUE(Get(id).granted);
    On(Progress{id, 1, busy_us});
  }
};

TEST_F(TurnsTest, FifoGivesWayToAnEarlierOneThatComesBack) {
  Add({1, 1});
  Add({2, 2});
  const LaneId lane = Get(1).lane;
  On(Paused{1});
  On(Switched{lane, 1, 2});
  ASSERT_TRUE(Get(2).granted);
  const std::vector<Action> actions = On(Resumed{1});
  ASSERT_EQ(Of<Revoke>(actions).size(), 1u);
  EXPECT_EQ(Of<Revoke>(actions)[0].session, 2u);
  ASSERT_EQ(Of<Successors>(actions).size(), 1u);
  EXPECT_EQ(Of<Successors>(actions)[0].sessions, std::vector<SessionId>{1});
}

TEST_F(TurnsTest, ANewPolicyOrdersWhoWaitsAlready) {
  for (SessionId id = 1; id <= 3; ++id) {
    SessionArrived about = {id, id};
    about.priority = static_cast<uint32_t>(4 - id);
    Add(about);
  }
  On(PolicyChanged{"priority"});
  On(Paused{1});
  EXPECT_EQ(state_.lanes.at(Get(1).lane).published, (std::vector<SessionId>{3, 2}));
}

TEST_F(TurnsTest, ANewPolicyOrdersWhoWaitsForMemory) {
  On(CapacityChanged{0, 100});
  SessionArrived first = {1, 1};
  first.fixed = true;
  On(first);
  On(MemoryNeeded{1, 60});
  for (SessionId id = 2; id <= 3; ++id) {
    SessionArrived about = {id, id};
    about.priority = static_cast<uint32_t>(4 - id);
    about.estimate.persistent_bytes = 50;
    On(about);
  }
  On(PolicyChanged{"priority"});
  const std::vector<Admit> admitted = Of<Admit>(On(MemoryFreed{1, 10}));
  ASSERT_EQ(admitted.size(), 1u);
  EXPECT_EQ(admitted[0].session, 3u);
}

// The worker handed over before it heard of the change.
TEST_F(TurnsTest, ASuccessorThatCanNoMoreRunGoesAtItsNextBoundary) {
  Add({1, 1});
  Add({2, 2});
  const LaneId lane = Get(1).lane;
  On(Paused{1});
  On(Paused{2});
  const std::vector<Revoke> revoked = Of<Revoke>(On(Switched{lane, 1, 2}));
  ASSERT_EQ(revoked.size(), 1u);
  EXPECT_EQ(revoked[0].session, 2u);
}

TEST_F(TurnsTest, ANewHolderIsToldThatNobodyFollowsIt) {
  Add({1, 1});
  Add({2, 2});
  const LaneId lane = Get(1).lane;
  On(Paused{1});
  On(Switched{lane, 1, 2});
  const std::vector<Successors> told = Of<Successors>(On(Paused{2}));
  ASSERT_EQ(told.size(), 1u) << "a list for the one before may reach its worker late";
  EXPECT_TRUE(told[0].sessions.empty());
}

class SrtfTurnsTest : public TurnsTest {
 protected:
  SrtfTurnsTest() : TurnsTest("srtf") {}
  SessionArrived Lasting(SessionId id, int64_t total_us) {
    SessionArrived about = {id, id};
    about.estimate.total_us = total_us;
    return about;
  }
};

TEST_F(SrtfTurnsTest, OfALearnedTotalWhatWasServedIsLeftOut) {
  Add(Lasting(1, 1'000'000));
  Serve(1, 500'000);
  Add(Lasting(2, 600'000));
  EXPECT_FALSE(Get(1).revoked) << "500 ms are left of it";
  Add(Lasting(3, 400'000));
  EXPECT_TRUE(Get(1).revoked);
}

TEST_F(SrtfTurnsTest, WhoRunsPastItsTotalIsTakenToNeedAsMuchMore) {
  Add(Lasting(1, 100'000));
  Serve(1, 500'000);
  Add(Lasting(2, 450'000));
  EXPECT_FALSE(Get(1).revoked);
  Add(Lasting(3, 300'000));
  EXPECT_TRUE(Get(1).revoked);
}

TEST_F(SrtfTurnsTest, ATimerIsSetForWhoStarves) {
  state_.limits.starvation_us = 1'000'000;
  Add(Lasting(1, 1'000'000'000));
  Add(Lasting(2, 2'000'000'000));
  const int64_t due_us = Get(2).waiting_us + state_.limits.starvation_us;
  EXPECT_EQ(NextTimerUs(state_), due_us) << "nothing else changes that policy's mind";
  EXPECT_TRUE(Of<Revoke>(At(due_us - 1, Timer{})).empty());
  EXPECT_EQ(Of<Revoke>(At(due_us, Timer{})).size(), 1u);
}

class FairTurnsTest : public TurnsTest {
 protected:
  explicit FairTurnsTest(const std::string& policy = "fair") : TurnsTest(policy) {}
  // How long `id` is served in all of `span_us`, while `other` wants the lane as much.
  int64_t ServedOf(SessionId id, SessionId other, int64_t span_us) {
    constexpr int64_t kIterationUs = 1'000;
    int64_t served_us = 0;
    for (int64_t spent_us = 0; spent_us < span_us; spent_us += kIterationUs) {
      const SessionId holder = Get(id).granted ? id : other;
      Serve(holder, kIterationUs);
      served_us += holder == id ? kIterationUs : 0;
      if (Get(holder).revoked) On(Switched{Get(holder).lane, holder, holder == id ? other : id});
    }
    return served_us;
  }
};

TEST_F(FairTurnsTest, WhoSleptIsOwedASliceAtMost) {
  Add({1, 1});
  Add({2, 2});
  On(Idle{2});
  Serve(1, 10'000'000);
  On(Runnable{2});
  EXPECT_NEAR(static_cast<double>(ServedOf(2, 1, 2'000'000)), 1'000'000, 50'000);
}

class SharesTurnsTest : public FairTurnsTest {
 protected:
  SharesTurnsTest() : FairTurnsTest("shares") { state_.limits.lanes_max = 16; }
};

TEST_F(SharesTurnsTest, AUserWhoSleptIsOwedNothing) {
  for (const SessionId id : {1, 2}) {
    SessionArrived about = {id, id};
    about.user = static_cast<uint32_t>(id);
    Add(about);
  }
  On(Idle{2});
  Serve(1, 10'000'000);
  On(Runnable{2});
  int64_t served_us = 0;
  for (int64_t spent_us = 0; spent_us < 2'000'000; spent_us += 1'000) {
    const SessionId holder = Get(1).granted ? 1 : 2;
    Serve(holder, 1'000);
    served_us += holder == 2 ? 1'000 : 0;
    if (Get(holder).revoked) On(Switched{Get(holder).lane, holder, 0});
  }
  EXPECT_NEAR(static_cast<double>(served_us), 1'000'000, 50'000);
}

// A lane more is not worth it where all together get less done than before.
TEST(PackTest, MeasuredInterferenceNarrows) {
  const State state("pack");
  Device device;
  device.speed = {{}, {}, {0.9, 1'000}, {0.8, 1'000}, {0.5, 1'000}, {0.45, 1'000}};
  EXPECT_EQ(PackPolicy()->Lanes(state, device), 3u);
  EXPECT_EQ(PackPolicy()->Width(state, device), 3u);
  device.speed[3].share = 0.5;  // 1.5 instead of 1.8
  EXPECT_EQ(PackPolicy()->Lanes(state, device), 2u);
  device.speed[2].share = 0.48;  // together less than one alone
  EXPECT_EQ(PackPolicy()->Lanes(state, device), 1u);
  device.speed[5].at_us = 61'002'000;  // what was measured long ago counts no more
  EXPECT_EQ(PackPolicy()->Lanes(state, device), state.limits.lanes_max);
}

}  // namespace
}  // namespace scheduler
