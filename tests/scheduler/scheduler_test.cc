#include "scheduler/scheduler.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <set>

#include "tests/harness/seed.h"
#include "tests/scheduler/actions.h"

namespace scheduler {
namespace {

class SchedulerTest : public ::testing::Test {
 protected:
  explicit SchedulerTest(unsigned sessions_max = 2) { state_.limits.sessions_max = sessions_max; }
  std::vector<Action> On(const Event& event) { return OnEvent(&state_, event, ++now_us_); }

  State state_;
  int64_t now_us_ = 0;
};

TEST_F(SchedulerTest, AdmitsUpToTheLimitThenRejects) {
  EXPECT_TRUE(std::holds_alternative<Admit>(On(SessionArrived{1, 1}).at(0)));
  EXPECT_TRUE(std::holds_alternative<Admit>(On(SessionArrived{2, 1}).at(0)));
  const std::vector<Action> actions = On(SessionArrived{3, 1});
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_NE(std::get<Reject>(actions[0]).reason.find("2 sessions"), std::string::npos);
}

TEST_F(SchedulerTest, WaitsForAPlaceThatIsComing) {
  On(SessionArrived{1, 1});
  On(SessionArrived{2, 1});
  On(SessionEnding{1});
  EXPECT_TRUE(std::holds_alternative<Queue>(On(SessionArrived{3, 1}).at(0)));
  EXPECT_TRUE(std::holds_alternative<Reject>(On(SessionArrived{4, 1}).at(0)));  // the place is 3's
  const std::vector<Action> actions = On(SessionLeft{1});
  ASSERT_EQ(actions.size(), 2u);  // and its lane
  EXPECT_EQ(std::get<Admit>(actions[0]).session, 3u);
}

// What a new daemon learns of sessions that run: also what people had ordered.
TEST_F(SchedulerTest, WhoIsAdoptedPausedStaysPaused) {
  On(CapacityChanged{0, 100});
  SessionAdopted one{{1, 1}, 10, 10, 1, 10};
  one.granted = true;
  one.pause = Pause::kPaused;
  EXPECT_EQ(Of<Revoke>(On(one)).size(), 1u) << "it is revoked at its next boundary";
  SessionAdopted two{{2, 1}, 10, 0};
  two.place = {Residence::kHost};
  two.pause = Pause::kEvicted;
  EXPECT_TRUE(Of<SwapIn>(On(two)).empty());
  EXPECT_TRUE(Of<SwapIn>(On(Runnable{2})).empty());
  On(Switched{1, 1, 0});
  EXPECT_TRUE(Of<Grant>(On(Runnable{1})).empty());
  EXPECT_EQ(Of<SwapIn>(On(Resumed{2})).size(), 1u);
  EXPECT_EQ(Of<Grant>(On(Resumed{1})).size(), 1u);
}

// It was told to go by a daemon that is no more; where it is, it says when it is there.
TEST_F(SchedulerTest, WhoIsAdoptedOnTheWayToTheHostComesBackFromThere) {
  for (const bool arrives : {true, false}) {
    On(CapacityChanged{0, 100});
    SessionAdopted event{{1, 1}, 10, 0};
    event.place = {Residence::kGoingOut};
    EXPECT_TRUE(Of<SwapOut>(On(event)).empty()) << "it was told";
    EXPECT_TRUE(Of<Grant>(On(Runnable{1})).empty()) << "its memory is not there";
    const std::vector<Action> actions = On(Swapped{1, true, arrives, "no room"});
    EXPECT_EQ(Of<SwapIn>(actions).size(), arrives ? 1u : 0u);
    EXPECT_EQ(Of<Grant>(arrives ? On(Swapped{1, false, true, ""}) : actions).size(), 1u);
    On(SessionLeft{1});
  }
}

// The lane that the session comes back to must be free, and the session goes on there before any
// other.
TEST_F(SchedulerTest, WhoIsAdoptedOnTheHostWithItsLaneComesBackWithIt) {
  On(CapacityChanged{0, 100});
  On(SessionAdopted{{1, 1}, 10, 20, 1, 20, true});
  SessionAdopted event{{2, 1}, 10, 20};
  event.place = {Residence::kHost, 1};
  EXPECT_TRUE(Of<SwapIn>(On(event)).empty()) << "another is in the lane";
  EXPECT_EQ(state_.swapped_bytes, 30);
  std::vector<Action> actions = On(Runnable{2});
  EXPECT_EQ(Of<Revoke>(actions).size(), 1u);
  actions = On(Switched{1, 1, 0});
  ASSERT_EQ(Of<SwapIn>(actions).size(), 1u);
  EXPECT_TRUE(Of<SwapIn>(actions)[0].with_lane);
  EXPECT_TRUE(Of<Grant>(On(Runnable{1})).empty());
  actions = On(Swapped{2, false, true, ""});
  ASSERT_EQ(Of<Grant>(actions).size(), 1u);
  EXPECT_EQ(Of<Grant>(actions)[0].session, 2u);
  EXPECT_EQ(state_.swapped_bytes, 0);
}

// It has its memory and its lane already, or has it not: another would be in its iteration's way.
TEST_F(SchedulerTest, WhoIsAdoptedOnTheWayBackKeepsItsLane) {
  for (const bool arrives : {true, false}) {
    On(CapacityChanged{0, 100});
    SessionAdopted event{{1, 1}, 10, 20, 7, 20};
    event.place = {Residence::kComingIn, 1};
    EXPECT_TRUE(On(event).empty()) << "it was told";
    EXPECT_EQ(state_.swapped_bytes, 30);
    EXPECT_EQ(state_.devices.at(0).free_bytes(), 70);
    On(SessionAdopted{{2, 1}, 10, 20, 7, 20});
    EXPECT_TRUE(Of<Grant>(On(Runnable{2})).empty());
    std::vector<Action> actions = On(Swapped{1, false, arrives, "no room"});
    if (arrives) {
      ASSERT_EQ(Of<Grant>(actions).size(), 1u);
      EXPECT_EQ(Of<Grant>(actions)[0].session, 1u);
      EXPECT_EQ(Of<Grant>(actions)[0].lane, 7u);
      EXPECT_EQ(state_.swapped_bytes, 0);
    } else {
      ASSERT_EQ(Of<Grant>(actions).size(), 1u);
      EXPECT_EQ(Of<Grant>(actions)[0].session, 2u);
      EXPECT_EQ(state_.swapped_bytes, 30);
    }
    On(SessionLeft{1});
    On(SessionLeft{2});
    On(LaneShrunk{7, 0});
  }
}

TEST_F(SchedulerTest, FirstComeFirstServed) {
  On(SessionArrived{9, 1});
  On(SessionArrived{8, 1});
  On(SessionEnding{9});
  On(SessionEnding{8});
  On(SessionArrived{7, 1});
  On(SessionArrived{6, 1});
  EXPECT_EQ(std::get<Admit>(On(SessionLeft{8}).at(0)).session, 7u);
  EXPECT_EQ(std::get<Admit>(On(SessionLeft{9}).at(0)).session, 6u);
}

TEST_F(SchedulerTest, OneThatLeavesTheQueueIsForgotten) {
  On(SessionArrived{1, 1});
  On(SessionArrived{2, 1});
  On(SessionEnding{1});
  On(SessionArrived{3, 1});
  EXPECT_TRUE(On(SessionLeft{3}).empty());
  EXPECT_TRUE(On(SessionLeft{1}).empty());
}

TEST_F(SchedulerTest, UnknownSessionsAreIgnored) {
  EXPECT_TRUE(On(SessionEnding{5}).empty());
  EXPECT_TRUE(On(SessionLeft{5}).empty());
}

TEST(PolicyTest, UnknownNamesAreNull) {
  EXPECT_EQ(FindPolicy("whim"), nullptr);
  EXPECT_STREQ(FindPolicy("fifo")->name(), "fifo");
}

// Random events: never more admitted than places, nobody admitted twice, and nobody waits while a
// place is free.
TEST(SchedulerPropertyTest, RandomEvents) {
  std::mt19937_64 random(harness::Seed());
  for (int round = 0; round < 200; ++round) {
    State state;
    state.limits.sessions_max = 1 + random() % 8;
    std::set<SessionId> queued, admitted;
    SessionId next = 1;
    for (int step = 0; step < 300; ++step) {
      Event event = SessionArrived{next, random() % 3};
      const bool arrives = random() % 2 == 0;
      const SessionId someone = 1 + random() % next;
      if (arrives) {
        queued.insert(next++);
      } else if (random() % 2 == 0) {
        event = SessionEnding{someone};
      } else {
        event = SessionLeft{someone};
        queued.erase(someone);
        admitted.erase(someone);
      }
      for (const Action& action : OnEvent(&state, event, step)) {
        if (const Admit* admit = std::get_if<Admit>(&action)) {
          ASSERT_EQ(queued.erase(admit->session), 1u);
          ASSERT_TRUE(admitted.insert(admit->session).second);
        } else if (const Reject* reject = std::get_if<Reject>(&action)) {
          ASSERT_EQ(queued.erase(reject->session), 1u);
          ASSERT_NE(reject->reason, "");
        }
      }
      ASSERT_LE(admitted.size(), state.limits.sessions_max);
      ASSERT_TRUE(queued.empty() || admitted.size() == state.limits.sessions_max);
      ASSERT_EQ(state.sessions.size(), queued.size() + admitted.size());
    }
  }
}

}  // namespace
}  // namespace scheduler
