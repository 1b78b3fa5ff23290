#include "daemon/control/placement.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "ipc/socket.h"
#include "tests/daemon/control/testing.h"

namespace control {
namespace {

using Workers = std::vector<uint32_t>;

class PlacementTest : public ::testing::Test {
 protected:
  Session* AddAtRest(uint64_t id, uint32_t worker) {
    Session* const session = AddRunning(&sessions_, id, 0, worker);
    session->fds.process = *ipc::OpenPidfd(getpid());
    return session;
  }
  Workers Unused(const std::set<uint32_t>& held = {}) {
    return UnusedWorkers(children_.workers(), sessions_, held);
  }

  FakeChildren children_;
  SessionTable sessions_;
  Placement placement_;
};

TEST_F(PlacementTest, AContainedSessionIsServedByItsOwnWorkerAlone) {
  children_.AddWorker(1);
  Session* const session = AddAtRest(1, 0);
  EXPECT_EQ(WorkerFor(*session, children_)->number, 1u);
  session->record.contained = 1;
  EXPECT_EQ(WorkerFor(*session, children_), nullptr);
  session->own_worker = 2;
  children_.AddWorker(2, false, true);
  EXPECT_EQ(WorkerFor(*session, children_), nullptr) << "it is starting";
  children_.AddWorker(2, true, true);
  EXPECT_EQ(WorkerFor(*session, children_)->number, 2u);
}

TEST_F(PlacementTest, NewSessionsGoToNoWorkerThatLeavesOrIsAnothers) {
  children_.AddWorker(1);
  children_.AddWorker(2, true, true);
  children_.Transition(1, WorkerState::kLeaving);
  EXPECT_EQ(WorkerFor(*AddAtRest(1, 0), children_), nullptr);
  children_.AddWorker(3);
  EXPECT_EQ(WorkerFor(*sessions_.Find(1), children_)->number, 3u);
}

TEST_F(PlacementTest, AProgramThatEndedTwoWorkersIsQuarantined) {
  EXPECT_FALSE(placement_.IsQuarantined(1, "a"));
  EXPECT_EQ(placement_.NoteOffence(1, "a"), 1);
  EXPECT_FALSE(placement_.IsQuarantined(1, "a"));
  EXPECT_EQ(placement_.NoteOffence(1, "a"), Placement::kOffencesMax);
  EXPECT_TRUE(placement_.IsQuarantined(1, "a"));
  EXPECT_FALSE(placement_.IsQuarantined(1, "b"));
  EXPECT_FALSE(placement_.IsQuarantined(2, "a"));
}

TEST_F(PlacementTest, ASharedWorkerWithoutSessionsStays) {
  children_.AddWorker(1);
  EXPECT_EQ(Unused(), Workers());
}

TEST_F(PlacementTest, AWorkerThatTakesNoMoreSessionsEndsWithItsLast) {
  children_.AddWorker(1);
  children_.AddWorker(2, true, true);
  children_.Transition(1, WorkerState::kLeaving);
  AddAtRest(1, 1);
  AddAtRest(2, 0)->own_worker = 2;
  EXPECT_EQ(Unused(), Workers());
  sessions_.Find(1)->phase = Phase::kLost;
  EXPECT_EQ(Unused(), Workers{1});
  children_.Transition(1, WorkerState::kRetired);
  EXPECT_EQ(Unused(), Workers()) << "it is told once";
  sessions_.Remove(2);
  EXPECT_EQ(Unused(), Workers{2});
}

TEST_F(PlacementTest, AnUpgradeHoldsItsWorkersUntilTheNewOneIsThere) {
  children_.AddWorker(1);
  children_.Transition(1, WorkerState::kLeaving);
  EXPECT_EQ(Unused({1}), Workers());
  EXPECT_EQ(Unused(), Workers{1});
}

TEST_F(PlacementTest, OnlyASessionAtRestWithoutAnObstacleCanMove) {
  Session* const session = AddAtRest(1, 1);
  EXPECT_TRUE(CanMove(*session));
  session->page->obstacles = ipc::kUnknownImage;
  EXPECT_FALSE(CanMove(*session));
  session->page->obstacles = 0;
  session->page->to_worker.tail = 64;
  EXPECT_FALSE(CanMove(*session)) << "work is in flight";
  session->page->quiet_position = 64;
  EXPECT_TRUE(CanMove(*session));
  session->moves_failed = Placement::kMovesFailedMax;
  EXPECT_FALSE(CanMove(*session));
  session->moves_failed = 0;
  session->faulted = true;
  EXPECT_FALSE(CanMove(*session));
  session->faulted = false;
  FakeLink in_process(true);
  session->link = &in_process;
  EXPECT_FALSE(CanMove(*session));
}

}  // namespace
}  // namespace control
