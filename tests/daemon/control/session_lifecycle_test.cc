#include "daemon/control/session_lifecycle.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "ipc/socket.h"
#include "tests/daemon/control/testing.h"

namespace control {
namespace {

namespace wire = ipc::control;

constexpr Phase kPhases[] = {Phase::kQueued, Phase::kWaiting,  Phase::kAttaching, Phase::kRunning,
                             Phase::kMoving, Phase::kEntering, Phase::kEnding,    Phase::kLost};

class SessionLifecycleTest : public ::testing::Test, public SessionLifecycle::Listener {
 protected:
  void SetUp() override { scheduler_.Serve(); }
  void OnOverdue(uint64_t session) override { overdue_.push_back(session); }

  // A session that the scheduler has admitted.
  Session* Admitted(uint64_t id) {
    scheduler_.Apply(scheduler::SessionArrived{.session = id});
    Session* const session = AddRunning(&sessions_, id);
    session->fds.process = *ipc::OpenPidfd(getpid());
    return session;
  }
  size_t ReleasedOwners() const { return children_.ToldKeeper<wire::ReleaseOwner>().size(); }

  common::EventLoop loop_;
  FakeChildren children_;
  SessionTable sessions_;
  NoExecutor executor_;
  SchedulerPort scheduler_{"fifo", FewSessions(), &loop_, &executor_, [] { return 1; }};
  Observers observers_{"", {&loop_, &sessions_, &scheduler_.state()}};
  LaneRegistry lanes_{{&sessions_, &scheduler_, &children_}};
  SessionLifecycle lifecycle_{
      {&loop_, &sessions_, &scheduler_, &observers_, &lanes_}, {"/nonexistent", 1}, this};
  std::vector<uint64_t> overdue_;
};

TEST_F(SessionLifecycleTest, TheLegalTransitionsAreThese) {
  const std::vector<std::pair<Phase, Phase>> legal = {
      {Phase::kQueued, Phase::kWaiting},    {Phase::kQueued, Phase::kRunning},
      {Phase::kWaiting, Phase::kAttaching}, {Phase::kAttaching, Phase::kWaiting},
      {Phase::kAttaching, Phase::kRunning}, {Phase::kAttaching, Phase::kEnding},
      {Phase::kRunning, Phase::kMoving},    {Phase::kRunning, Phase::kEnding},
      {Phase::kRunning, Phase::kLost},      {Phase::kMoving, Phase::kEntering},
      {Phase::kMoving, Phase::kLost},       {Phase::kEntering, Phase::kRunning},
      {Phase::kEntering, Phase::kMoving},   {Phase::kEntering, Phase::kEnding},
      {Phase::kEntering, Phase::kLost}};
  for (const Phase from : kPhases) {
    for (const Phase to : kPhases) {
      const bool expected =
          std::find(legal.begin(), legal.end(), std::make_pair(from, to)) != legal.end();
      EXPECT_EQ(IsLegal(from, to), expected)
          << NameOf(from) << " (" << static_cast<int>(from) << ") -> " << static_cast<int>(to);
    }
  }
}

TEST_F(SessionLifecycleTest, AnIllegalTransitionIsABug) {
  Session* const session = AddRunning(&sessions_, 1);
  session->phase = Phase::kLost;
  EXPECT_DEATH(lifecycle_.Transition(session, Phase::kRunning), "IsLegal");
}

TEST_F(SessionLifecycleTest, ALostSessionHoldsNothing) {
  Session* const session = Admitted(1);
  session->has_slot = true;
  lifecycle_.Transition(session, Phase::kLost);
  EXPECT_EQ(sessions_.Find(1), session) << "it is listed until its program ends";
  EXPECT_FALSE(session->has_slot);
  EXPECT_FALSE(session->progress.shared());
  EXPECT_EQ(ReleasedOwners(), 2u) << "its memory, and the lane of its own";
  EXPECT_EQ(scheduler_.state().Find(1), nullptr);
}

TEST_F(SessionLifecycleTest, ARemovedSessionIsNowhere) {
  lifecycle_.Remove(Admitted(1));
  EXPECT_EQ(sessions_.Find(1), nullptr);
  EXPECT_EQ(scheduler_.state().Find(1), nullptr);
  EXPECT_EQ(ReleasedOwners(), 2u);
  EXPECT_EQ(observers_.journal().After(0, 10).back().kind, EventKind::kSessionEnd);
}

TEST_F(SessionLifecycleTest, ASessionThatMovesHasNoWorkerAndItsClientIsTold) {
  Session* const session = Admitted(1);
  lifecycle_.Transition(session, Phase::kMoving);
  EXPECT_EQ(session->worker, 0u);
  EXPECT_EQ(session->page->moving.load(), 1u);
  lifecycle_.Transition(session, Phase::kEntering);
  EXPECT_EQ(session->record.generation, 1u);
}

TEST_F(SessionLifecycleTest, ASwapThatTheLostWorkerHadDoneIsSettled) {
  Session* const session = Admitted(1);
  session->swap = wire::Swap{1, 0, 0};  // to the device; no memory is left on the host
  lifecycle_.Transition(session, Phase::kMoving);
  EXPECT_FALSE(session->swap.has_value());
}

TEST_F(SessionLifecycleTest, WhicheverWayASessionEndsItsEndIsWaitedFor) {
  for (const Phase from : {Phase::kAttaching, Phase::kRunning, Phase::kEntering}) {
    overdue_.clear();
    Session* const session = Admitted(1);
    session->phase = from;
    lifecycle_.Transition(session, Phase::kEnding);
    EXPECT_EQ(scheduler_.state().Find(1)->phase, scheduler::Phase::kEnding);
    while (overdue_.empty()) loop_.RunOnce();
    EXPECT_EQ(overdue_, std::vector<uint64_t>{1});
    lifecycle_.Remove(session);
  }
}

}  // namespace
}  // namespace control
