#include "daemon/control/observers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ipc/futex.h"
#include "tests/daemon/control/testing.h"

namespace control {
namespace {

class ObserversTest : public ::testing::Test {
 protected:
  std::vector<Event> Events() const { return observers_.journal().After(0, 100); }

  common::EventLoop loop_;
  SessionTable sessions_;
  scheduler::State state_{"fifo"};
  Now now_{1'000'000, 100};
  Observers observers_{"", {&loop_, &sessions_, &state_}, [this] { return now_; }};
};

TEST_F(ObserversTest, AnEventWithoutATimeGetsThePresentOne) {
  observers_.Note({.kind = EventKind::kGrant, .session = 1});
  observers_.Note({.kind = EventKind::kSwitch, .at_us = 7, .session = 1});
  ASSERT_EQ(Events().size(), 2u);
  EXPECT_EQ(Events()[0].at_us, 1'000'000);
  EXPECT_EQ(Events()[1].at_us, 7);
}

TEST_F(ObserversTest, KeepsTheLatestFaultsAndCountsAll) {
  for (uint64_t id = 1; id <= Observers::kFaultsMax + 2; ++id)
    observers_.AddFault({id, 0, "program", 700, "its kernel faulted"});
  EXPECT_EQ(observers_.faults_seen(), Observers::kFaultsMax + 2);
  ASSERT_EQ(observers_.faults().size(), Observers::kFaultsMax);
  EXPECT_EQ(observers_.faults().front().session_id, 3u);
  EXPECT_EQ(Events().back().kind, EventKind::kFault);
  EXPECT_STREQ(Events().back().text, "its kernel faulted");
}

TEST_F(ObserversTest, TheEndOfALostSessionSaysHow) {
  Session* const session = AddRunning(&sessions_, 1);
  observers_.Begin(*session);
  ipc::MarkLost(session->page.get(), 805, "the worker ended");
  observers_.End(*session);
  ASSERT_EQ(Events().size(), 2u);
  EXPECT_EQ(Events()[0].kind, EventKind::kSessionBegin);
  EXPECT_STREQ(Events()[0].text, "program");
  EXPECT_EQ(Events()[1].kind, EventKind::kSessionEnd);
  EXPECT_EQ(Events()[1].job, 10u);
  EXPECT_STREQ(Events()[1].text, "the worker ended");
}

TEST_F(ObserversTest, ASampleTellsNewIterations) {
  Session* const session = AddRunning(&sessions_, 1);
  observers_.Begin(*session);
  observers_.Sample();
  now_.us += 500'000;
  session->page->iteration_times.count = 3;
  session->page->iteration_times.total_us = 3000;
  session->page->iteration_times.times[ipc::BucketOf(1000)] = 3;
  observers_.Sample();
  ASSERT_EQ(Events().size(), 4u);  // the begin, and one of each iteration
  EXPECT_EQ(Events().back().kind, EventKind::kIterations);
}

TEST_F(ObserversTest, ASessionWithoutAPageIsNoTrouble) {
  Session* const session = sessions_.Add({.session_id = 1}, AnyLink());
  observers_.Begin(*session);
  observers_.Sample();
  observers_.End(*session);
  EXPECT_EQ(Events().back().kind, EventKind::kSessionEnd);
}

}  // namespace
}  // namespace control
