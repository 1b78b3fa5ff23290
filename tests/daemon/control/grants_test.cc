#include "daemon/control/grants.h"

#include <gtest/gtest.h>

#include "tests/daemon/control/parts.h"

namespace control {
namespace {

namespace wire = ipc::control;

constexpr uint32_t kOutOfMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY

class GrantsTest : public PartsTest {
 protected:
  template <class M>
  M Last(uint32_t worker = 1) const {
    const std::vector<M> sent = children_.SentTo<M>(worker);
    EXPECT_FALSE(sent.empty());
    return sent.empty() ? M() : sent.back();
  }
};

TEST_F(GrantsTest, AnAssignedLaneReachesRecordWorkerAndRegistry) {
  Session* const session = Admitted(1);
  session->asks_lane = true;
  grants_.Execute(scheduler::AssignLane{1, 7, 4096, true});
  EXPECT_EQ(session->lane, 7u);
  EXPECT_FALSE(session->asks_lane);
  EXPECT_EQ(Last<wire::AssignLane>().lane, 7u);
  EXPECT_EQ(Last<wire::AssignLane>().bytes, 4096u);
  sessions_.Remove(1);
  lanes_.OnSessionGone(1);
  EXPECT_FALSE(children_.ToldKeeper<wire::ReleaseOwner>().empty()) << "it was a guest there";
}

// lanewayd may be killed between the two.
TEST_F(GrantsTest, AWorkerHearsThatALaneIsSharedBeforeItHasTheLane) {
  children_.AddWorker(2);
  Admitted(1);
  AddRunning(&sessions_, 2, 7, 2);
  grants_.Execute(scheduler::AssignLane{1, 7, 4096, true});
  EXPECT_EQ(children_.SentTo<wire::LanePolicy>(1).size(), 1u);
  const bool in_order = children_.SentInOrder<wire::LanePolicy, wire::AssignLane>(1);
  EXPECT_TRUE(in_order);
}

TEST_F(GrantsTest, GrantAndRevokeReachTheWorkerAndTheJournal) {
  Admitted(1);
  grants_.Execute(scheduler::Grant{1, 7});
  EXPECT_EQ(Last<wire::Grant>().lane, 7u);
  EXPECT_EQ(observers_.journal().After(0, 10).back().kind, EventKind::kGrant);
  grants_.Execute(scheduler::Revoke{1, 7});
  EXPECT_EQ(Last<wire::Revoke>().session_id, 1u);
  EXPECT_EQ(observers_.journal().After(0, 10).back().kind, EventKind::kRevoke);
}

TEST_F(GrantsTest, ARefusalAnswersTheRequestThatWasMade) {
  Session* const session = Admitted(1);
  grants_.Execute(scheduler::RefuseMemory{1, "no room"});
  EXPECT_EQ(Last<wire::MemoryAnswer>().result, kOutOfMemory);
  EXPECT_EQ(session->refusal, "no room");
  session->asks_lane = true;
  grants_.Execute(scheduler::RefuseMemory{1, "no room"});
  EXPECT_EQ(Last<wire::AssignLane>().result, kOutOfMemory);
  grants_.Execute(scheduler::GrantMemory{1, 4096});
  EXPECT_EQ(Last<wire::MemoryAnswer>().result, 0u);
  EXPECT_EQ(session->refusal, "");
}

TEST_F(GrantsTest, ReportsReachTheScheduler) {
  Admitted(1);
  grants_.OnReport(wire::GateReport{1, wire::GateEvent::kRunnable});
  EXPECT_TRUE(Known(1)->runnable);
  grants_.OnReport(wire::GateReport{1, wire::GateEvent::kIdle});
  EXPECT_FALSE(Known(1)->runnable);
}

TEST_F(GrantsTest, ASessionThatDoesNotRunHasNothingToSay) {
  Admitted(1)->phase = Phase::kMoving;
  grants_.OnReport(wire::GateReport{1, wire::GateEvent::kRunnable});
  EXPECT_FALSE(Known(1)->runnable);
}

TEST_F(GrantsTest, ASwapBetweenTwoWorkersIsKeptForTheNext) {
  Session* const session = Admitted(1);
  session->phase = Phase::kMoving;
  grants_.Execute(scheduler::SwapIn{1, false});
  EXPECT_TRUE(session->swap.has_value());
  EXPECT_TRUE(children_.SentTo<wire::Swap>(1).empty());
  session->swap.reset();
  grants_.Execute(scheduler::SwapOut{1, false});
  EXPECT_FALSE(session->swap.has_value()) << "no worker has it now";
}

TEST_F(GrantsTest, TheSessionsOfALostWorkerHaveNoWork) {
  Admitted(1);
  Admitted(2)->worker = 2;
  grants_.OnReport(wire::GateReport{1, wire::GateEvent::kRunnable});
  grants_.OnReport(wire::GateReport{2, wire::GateEvent::kRunnable});
  grants_.OnWorkerLost(1);
  EXPECT_FALSE(Known(1)->runnable);
  EXPECT_TRUE(Known(2)->runnable);
}

TEST_F(GrantsTest, ProgressIsAppliedOnce) {
  Session* const session = Admitted(1);
  session->progress.get()->iterations = 3;
  grants_.NoteProgress(1);
  EXPECT_EQ(session->iterations_seen, 3u);
  grants_.NoteProgress(1);
  EXPECT_EQ(session->iterations_seen, 3u);
}

}  // namespace
}  // namespace control
