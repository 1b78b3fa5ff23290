#include "daemon/control/worker_sessions.h"

#include <gtest/gtest.h>

#include "tests/daemon/control/parts.h"

namespace control {
namespace {

namespace wire = ipc::control;

class WorkerSessionsTest : public PartsTest {
 protected:
  // The worker is lost, as lanewayd hears of it.
  void Lose(uint32_t worker, bool was_ready = true) {
    children_.RemoveWorker(worker);
    workers_.OnWorkerLost(worker, {was_ready, false, "the worker ended"});
  }

  WorkerSessions workers_{&core_};
};

TEST_F(WorkerSessionsTest, AReleasedSessionWaitsForTheNextWorker) {
  Session* const session = Admitted(1);
  scheduler_.Apply(scheduler::Runnable{1});
  workers_.OnReport(wire::SessionReleased{1});
  EXPECT_EQ(session->phase, Phase::kMoving);
  EXPECT_FALSE(Known(1)->runnable);
  workers_.ServeWaiting();
  EXPECT_EQ(session->phase, Phase::kEntering);
  workers_.OnReport(wire::Attached{.session_id = 1});
  EXPECT_EQ(session->phase, Phase::kRunning);
}

// The grant was sent to a worker that the session had left, and that ended before it could answer.
TEST_F(WorkerSessionsTest, AReleasedSessionIsGrantedItsLaneAgainInTheNextWorker) {
  Session* const session = Admitted(1);
  scheduler_.Apply(scheduler::Runnable{1});
  ASSERT_TRUE(Known(1)->granted);
  session->lane = static_cast<uint64_t>(Known(1)->lane);
  workers_.OnReport(wire::SessionReleased{1});
  EXPECT_FALSE(Known(1)->granted);
  children_.AddWorker(2);
  Lose(1);
  workers_.ServeWaiting();
  workers_.OnReport(wire::Attached{.session_id = 1});
  ASSERT_EQ(session->worker, 2u);
  grants_.OnReport(wire::GateReport{1, wire::GateEvent::kRunnable});
  EXPECT_TRUE(Known(1)->granted);
}

// The session took the lane while no lanewayd was there. Its next worker has no use for that lane,
// and lanewayd does not count the lane there.
TEST_F(WorkerSessionsTest, TheOwnLaneOfASessionThatLeavesItsWorkerIsFreed) {
  for (const bool lost : {false, true}) {
    const uint64_t id = lost ? 2 : 1;
    Admitted(id);
    children_.Forget();
    if (lost) {
      Lose(1);
    } else {
      workers_.OnReport(wire::SessionReleased{id});
    }
    const std::vector<wire::ReleaseOwner> told = children_.ToldKeeper<wire::ReleaseOwner>();
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].owner.kind, wire::OwnerKind::kLane);
    EXPECT_EQ(told[0].owner.id, wire::OwnLaneOf(id));
  }
}

TEST_F(WorkerSessionsTest, AWorkerThatASessionHasLeftAnswersNoLaterGrant) {
  Session* const session = Admitted(1);
  scheduler_.Apply(scheduler::Runnable{1});
  scheduler_.Apply(scheduler::Idle{1, true});
  session->lane = static_cast<uint64_t>(Known(1)->lane);
  session->worker = 2;
  grants_.OnReport(1, wire::Switched{session->lane, 1, 0, 0});
  EXPECT_TRUE(Known(1)->granted);
  grants_.OnReport(2, wire::Switched{session->lane, 1, 0, 0});
  EXPECT_FALSE(Known(1)->granted);
}

TEST_F(WorkerSessionsTest, AReleasedSessionThatCannotMoveIsLost) {
  Session* const session = Admitted(1);
  session->faulted = true;
  workers_.OnReport(wire::SessionReleased{1});
  EXPECT_EQ(session->phase, Phase::kLost);
}

TEST_F(WorkerSessionsTest, ASessionThatBrokeARuleIsListedUntilItsProgramEnds) {
  Session* const session = Admitted(1);
  workers_.OnReport(wire::SessionEnded{1});
  EXPECT_EQ(session->phase, Phase::kLost);
  Admitted(2)->phase = Phase::kEnding;
  workers_.OnReport(wire::SessionEnded{2});
  EXPECT_EQ(sessions_.Find(2), nullptr);
}

TEST_F(WorkerSessionsTest, ASessionWithWorkInFlightIsLostWithItsWorker) {
  Session* const at_rest = Admitted(1);
  Session* const busy = Admitted(2);
  busy->page->to_worker.tail = 64;
  Lose(1);
  EXPECT_EQ(at_rest->phase, Phase::kMoving);
  EXPECT_EQ(busy->phase, Phase::kLost);
}

TEST_F(WorkerSessionsTest, ASessionWhoseWorkersKeepEndingIsLost) {
  Session* const session = Admitted(1);
  for (int i = 1; i < Placement::kMovesFailedMax; ++i) {
    Lose(session->worker, i == 1);
    ASSERT_EQ(session->phase, Phase::kMoving) << i;
    workers_.ServeWaiting();
    const uint32_t next = children_.workers().begin()->first;
    children_.AddWorker(next);
    workers_.ServeWaiting();
    ASSERT_EQ(session->phase, Phase::kEntering);
  }
  Lose(session->worker);
  Lose(session->worker);
  EXPECT_EQ(session->phase, Phase::kLost);
}

TEST_F(WorkerSessionsTest, AProgramThatWaitsIsRefusedWhenTheWorkerDoesNotStart) {
  Session* const session = Admitted(1);
  session->phase = Phase::kWaiting;
  Lose(1, false);
  EXPECT_EQ(sessions_.Find(1), nullptr);
}

TEST_F(WorkerSessionsTest, NoWorkerStartsWhileLanewaydStops) {
  Admitted(1)->phase = Phase::kWaiting;
  children_.RemoveWorker(1);
  scheduler_.Stop();
  workers_.ServeWaiting();
  EXPECT_TRUE(children_.workers().empty());
}

}  // namespace
}  // namespace control
