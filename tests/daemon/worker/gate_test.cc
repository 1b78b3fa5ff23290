#include "daemon/worker/gate.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <random>
#include <thread>

namespace worker {
namespace {

namespace wire = ipc::control;

class GateTest : public ::testing::Test {
 protected:
  GateTest() : board_([this](const wire::WorkerToDaemon& message) { told_.push_back(message); }) {}

  std::unique_ptr<Gate> MakeGate(uint64_t id) {
    return std::make_unique<Gate>(&board_, id, [this, id] { woken_.push_back(id); });
  }
  // The last report of a switch.
  wire::Switched LastSwitch() const {
    for (size_t i = told_.size(); i-- > 0;) {
      if (const wire::Switched* switched = std::get_if<wire::Switched>(&told_[i])) return *switched;
    }
    return {};
  }
  // Sessions 1 and 2 are in lane 7: `one` holds it and ends while `two`, the next one, spins.
  void EndWhileItsSuccessorSpins(std::unique_ptr<Gate>* one, Gate* two) {
    two->ReportRunnable();
    board_.Grant(1, 7);
    board_.SetLane(2, 7);
    board_.SetSuccessors(7, {2});
    (*one)->Close();
    two->AwaitTurn([one] {  // called while it spins
      one->reset();
      return false;
    });
  }

  std::vector<wire::WorkerToDaemon> told_;
  std::vector<uint64_t> woken_;
  Board board_;
};

TEST_F(GateTest, GateIsClosedUntilItIsGranted) {
  const std::unique_ptr<Gate> gate = MakeGate(1);
  EXPECT_TRUE(gate->closed());
  gate->ReportRunnable();
  EXPECT_TRUE(gate->closed());
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(std::get<wire::GateReport>(told_[0]).event, wire::GateEvent::kRunnable);
  board_.Grant(1, 7);
  EXPECT_EQ(gate->state(), GateState::kOpen);
  EXPECT_EQ(woken_.back(), 1u);
}

TEST_F(GateTest, OpenGateOpensIntoTheGrantedLane) {
  const std::unique_ptr<Gate> gate = MakeGate(1);
  board_.SetLane(1, 7);
  EXPECT_FALSE(gate->OpensInto(7)) << "the gate is closed";
  board_.Grant(1, 7);
  EXPECT_TRUE(gate->OpensInto(7));
  EXPECT_FALSE(gate->OpensInto(6)) << "the session has not heard of the other lane";
  board_.SetLane(1, 8);
  EXPECT_FALSE(gate->OpensInto(7));
}

TEST_F(GateTest, RunnableAndIdleAreEachReportedOnce) {
  const std::unique_ptr<Gate> gate = MakeGate(1);
  gate->ReportRunnable();
  gate->ReportRunnable();
  gate->ReportIdle(true);
  gate->ReportIdle(true);
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_EQ(std::get<wire::GateReport>(told_[1]).event, wire::GateEvent::kIdle);
}

// A program ends its iteration after an idle period: from then on others may have the lane.
TEST_F(GateTest, StalledSessionAtItsBoundaryIsReportedIdle) {
  const std::unique_ptr<Gate> gate = MakeGate(1);
  gate->ReportRunnable();
  gate->ReportIdle(false);
  gate->ReportIdle(false);
  gate->ReportIdle(true);
  gate->ReportIdle(true);
  gate->ReportIdle(false);
  ASSERT_EQ(told_.size(), 3u);
  EXPECT_EQ(std::get<wire::GateReport>(told_[1]).event, wire::GateEvent::kStalled);
  EXPECT_EQ(std::get<wire::GateReport>(told_[2]).event, wire::GateEvent::kIdle);
}

TEST_F(GateTest, LaneGoesToTheFirstSuccessorThatHasWork) {
  const std::unique_ptr<Gate> one = MakeGate(1), two = MakeGate(2), three = MakeGate(3);
  one->ReportRunnable();
  three->ReportRunnable();
  board_.Grant(1, 7);
  board_.SetLane(2, 7);
  board_.SetLane(3, 7);
  board_.SetSuccessors(7, {2, 9, 3});
  board_.Revoke(1);
  EXPECT_EQ(one->state(), GateState::kRevoked);
  one->Close();
  EXPECT_TRUE(three->closed()) << "the device has not finished";
  one->HandOver();
  EXPECT_EQ(three->state(), GateState::kOpen);
  EXPECT_TRUE(two->closed());
  EXPECT_EQ(LastSwitch().from, 1u);
  EXPECT_EQ(LastSwitch().to, 3u);
  EXPECT_EQ(LastSwitch().lane, 7u);
}

TEST_F(GateTest, LaneWithoutSuccessorsIsReportedFree) {
  const std::unique_ptr<Gate> one = MakeGate(1), two = MakeGate(2);
  two->ReportRunnable();
  board_.Grant(1, 7);
  one->Close();
  one->HandOver();
  EXPECT_TRUE(two->closed()) << "only lanewayd may choose it";
  EXPECT_EQ(LastSwitch().to, 0u);
  board_.Grant(2, 7);
  EXPECT_FALSE(two->closed());
}

TEST_F(GateTest, LaneIsNeverOpenedOverItsHolder) {
  const std::unique_ptr<Gate> one = MakeGate(1), two = MakeGate(2);
  board_.Grant(1, 7);
  board_.Grant(2, 7);
  EXPECT_TRUE(two->closed());
  EXPECT_EQ(LastSwitch().from, 2u) << "lanewayd must hear that session 2 does not hold the lane";
  EXPECT_EQ(LastSwitch().to, 1u);
  one->Close();  // leaving, but with work on the device
  board_.Grant(2, 7);
  EXPECT_TRUE(two->closed());
}

TEST_F(GateTest, DeferredSwitchReportPrecedesSessionEnded) {
  std::unique_ptr<Gate> one = MakeGate(1);
  const std::unique_ptr<Gate> two = MakeGate(2);
  EndWhileItsSuccessorSpins(&one, two.get());
  EXPECT_FALSE(two->closed());
  EXPECT_TRUE(two->defers_report());
  EXPECT_EQ(LastSwitch().to, 0u) << "the switch itself waits for nothing";
  board_.FlushReports();  // as before SessionEnded is posted
  EXPECT_EQ(LastSwitch().from, 1u);
  EXPECT_EQ(LastSwitch().to, 2u);
}

TEST_F(GateTest, RevokedSessionIsWoken) {
  const std::unique_ptr<Gate> one = MakeGate(1);
  board_.Grant(1, 7);
  woken_.clear();
  board_.Revoke(1);
  EXPECT_EQ(woken_, std::vector<uint64_t>{1}) << "the session may be idle in its lane";
}

TEST_F(GateTest, NoReportOvertakesADeferredSwitchReport) {
  std::unique_ptr<Gate> one = MakeGate(1);
  const std::unique_ptr<Gate> two = MakeGate(2), three = MakeGate(3);
  EndWhileItsSuccessorSpins(&one, two.get());
  ASSERT_EQ(LastSwitch().to, 0u);
  three->ReportRunnable();
  ASSERT_GE(told_.size(), 2u);
  ASSERT_TRUE(std::holds_alternative<wire::GateReport>(told_.back()));
  EXPECT_TRUE(std::holds_alternative<wire::Switched>(told_[told_.size() - 2]));
}

TEST_F(GateTest, GrantTakesARevokeBack) {
  const std::unique_ptr<Gate> one = MakeGate(1);
  board_.Grant(1, 7);
  board_.Revoke(1);
  board_.Grant(1, 7);
  EXPECT_EQ(one->state(), GateState::kOpen);
  one->Close();
  board_.Grant(1, 7);  // crossed
  EXPECT_TRUE(one->closed());
}

TEST_F(GateTest, EndedSessionLeavesItsLaneToTheNext) {
  std::unique_ptr<Gate> one = MakeGate(1);
  const std::unique_ptr<Gate> two = MakeGate(2);
  two->ReportRunnable();
  board_.Grant(1, 7);
  board_.SetLane(2, 7);
  board_.SetSuccessors(7, {2});
  one.reset();
  EXPECT_FALSE(two->closed());
  EXPECT_EQ(LastSwitch().to, 2u);
  board_.Grant(1, 8);  // the grant crossed with the end: the lane is reported free
  EXPECT_EQ(LastSwitch().lane, 8u);
  EXPECT_EQ(LastSwitch().to, 0u);
}

TEST_F(GateTest, PausedSessionDoesNotFollow) {
  const std::unique_ptr<Gate> one = MakeGate(1), two = MakeGate(2);
  two->ReportRunnable();
  board_.Grant(1, 7);
  board_.SetLane(2, 7);
  board_.SetSuccessors(7, {2});
  board_.SetPaused(2, true);
  board_.SetPaused(1, true);
  EXPECT_EQ(one->state(), GateState::kRevoked);
  one->Close();
  one->HandOver();
  EXPECT_TRUE(two->closed());
}

// A list of successors may be older than the last order that lanewayd gave.
TEST_F(GateTest, OldSuccessorOnTheHostOrInAnotherLaneDoesNotFollow) {
  const std::unique_ptr<Gate> one = MakeGate(1), two = MakeGate(2), three = MakeGate(3);
  two->ReportRunnable();
  three->ReportRunnable();
  board_.Grant(1, 7);
  board_.SetLane(2, 7);
  board_.SetLane(3, 7);
  board_.SetSuccessors(7, {2, 3});
  two->OnSwappedOut();
  board_.SetLane(3, 8);
  one->Close();
  one->HandOver();
  EXPECT_TRUE(two->closed() && three->closed());
  EXPECT_EQ(LastSwitch().to, 0u);
  two->OnSwappedIn();
  board_.Grant(2, 7);
  EXPECT_FALSE(two->closed());
}

TEST_F(GateTest, WithoutADaemonASessionOnTheHostDoesNotRun) {
  const std::unique_ptr<Gate> one = MakeGate(1);
  board_.SetLane(1, 7);
  one->ReportRunnable();
  one->OnSwappedOut();
  board_.SetDaemon(false);
  EXPECT_TRUE(one->closed());
}

// The session comes back inside an iteration: no other session is let into its lane from before its
// memory is there, also when the daemon is lost meanwhile.
TEST_F(GateTest, SessionThatReturnsWithItsLaneHoldsItBeforehand) {
  const std::unique_ptr<Gate> one = MakeGate(1), two = MakeGate(2);
  one->ReportRunnable();
  two->ReportRunnable();
  board_.SetLane(1, 7);
  board_.SetLane(2, 7);
  board_.Grant(2, 7);
  one->OnSwappedOut();
  EXPECT_FALSE(one->TakeLane()) << "session 2 is in it";
  two->Close();
  two->HandOver();
  ASSERT_TRUE(one->TakeLane());
  EXPECT_TRUE(one->closed()) << "its memory is on the way";
  EXPECT_TRUE(board_.View(1).granted) << "a new daemon knows whose the lane is";
  board_.SetDaemon(false);
  EXPECT_TRUE(two->closed());
  board_.SetDaemon(true);
  board_.Grant(2, 7);
  EXPECT_TRUE(two->closed());
  EXPECT_EQ(LastSwitch().to, 1u);
  one->OnSwappedIn();
  EXPECT_EQ(one->state(), GateState::kOpen);
  board_.Grant(1, 7);
  EXPECT_EQ(one->state(), GateState::kOpen) << "lanewayd's grant comes later";
  one->OnSwappedOut();
  board_.Grant(2, 7);
  EXPECT_FALSE(two->closed());
}

// A pause that a person ordered holds whether lanewayd lives or not, and in the next worker, too.
TEST_F(GateTest, PauseOutlivesTheDaemon) {
  board_.SetPaused(2, true);  // the session comes from another worker, paused
  const std::unique_ptr<Gate> one = MakeGate(1), two = MakeGate(2);
  one->ReportRunnable();
  two->ReportRunnable();
  board_.SetLane(1, 7);
  board_.SetLane(2, 7);
  board_.SetDaemon(false);
  ASSERT_FALSE(one->closed());
  one->Close();
  one->HandOver();
  EXPECT_TRUE(two->closed()) << "session 2 is paused";
  board_.SetPaused(2, false);
  board_.SetDaemon(false);
  EXPECT_FALSE(one->closed());
  one->Close();
  one->HandOver();
  EXPECT_FALSE(two->closed());
}

TEST_F(GateTest, WithoutADaemonALaneGoesRound) {
  const std::unique_ptr<Gate> one = MakeGate(1), two = MakeGate(2), three = MakeGate(3);
  for (Gate* gate : {one.get(), two.get(), three.get()}) gate->ReportRunnable();
  board_.Grant(1, 7);
  board_.SetLane(2, 7);
  board_.SetLane(3, 7);
  board_.SetDaemon(false);
  std::vector<uint64_t> order;
  for (Gate* holder : {one.get(), two.get(), three.get(), one.get(), two.get()}) {
    ASSERT_FALSE(holder->closed());
    holder->Close();
    holder->HandOver();
    order.push_back(LastSwitch().to);
  }
  EXPECT_EQ(order, (std::vector<uint64_t>{2, 3, 1, 2, 3}));
}

TEST_F(GateTest, SessionThatWaitsWhenTheDaemonGoesIsLetIn) {
  const std::unique_ptr<Gate> one = MakeGate(1), two = MakeGate(2);
  one->ReportRunnable();
  board_.SetLane(1, 7);
  board_.SetLane(2, 7);
  EXPECT_TRUE(one->closed());
  board_.SetDaemon(false);
  EXPECT_FALSE(one->closed());
  EXPECT_FALSE(one->TurnIsOver()) << "no other session waits";
  two->ReportRunnable();
  EXPECT_TRUE(two->closed());
  one->ReportIdle(true);
  EXPECT_TRUE(one->TurnIsOver()) << "session 1 has nothing to do";
}

// Another worker's session may be inside.
TEST_F(GateTest, WithoutADaemonALaneOfSeveralWorkersIsNotOpened) {
  const std::unique_ptr<Gate> one = MakeGate(1), two = MakeGate(2);
  for (uint64_t id = 1; id <= 2; ++id) board_.SetLane(id, 7);
  board_.SetPolicy({.lane = 7, .self_service = 0});
  one->ReportRunnable();
  board_.SetDaemon(false);
  two->ReportRunnable();
  EXPECT_TRUE(one->closed() && two->closed());
  board_.SetDaemon(true);
  board_.Grant(1, 7);
  board_.SetDaemon(false);
  EXPECT_FALSE(one->closed());
  one->Close();
  one->HandOver();
  EXPECT_FALSE(two->closed()) << "the lane is in this worker still";
}

// lanewayd says that a lane is shared before it sends a session there, and may be lost in between.
TEST_F(GateTest, ASharedLaneStaysSharedWhileNoSessionOfThisWorkerIsInIt) {
  std::unique_ptr<Gate> one = MakeGate(1);
  const std::unique_ptr<Gate> two = MakeGate(2);
  board_.SetPolicy({.lane = 7, .self_service = 0});
  one.reset();
  two->ReportRunnable();
  board_.SetDaemon(false);
  board_.SetLane(2, 7);
  EXPECT_TRUE(two->closed()) << "a session of another worker may be inside";
}

// Threads that hold the lane exclude each other, and the lane is never lost.
TEST(GateThreadsTest, OneAtATime) {
  constexpr uint64_t kSessions = 4;
  constexpr int kTurns = 100;
  struct Sleeper {
    std::mutex mutex;
    std::condition_variable changed;
    uint64_t rings = 0;
  };
  Sleeper sleepers[kSessions + 1];
  Board board([](const wire::WorkerToDaemon&) {});
  std::atomic<int> inside{0};
  std::atomic<bool> overlap{false};
  const auto live = [&](std::unique_ptr<Gate> gate, Sleeper* sleeper) {
    gate->ReportRunnable();
    for (int turn = 0; turn < kTurns; ++turn) {
      std::unique_lock<std::mutex> lock(sleeper->mutex);
      sleeper->changed.wait(lock, [&] { return !gate->closed(); });
      lock.unlock();
      if (inside.fetch_add(1) != 0) overlap = true;
      std::this_thread::yield();
      inside.fetch_sub(1);
      gate->Close();
      std::thread([&gate] { gate->HandOver(); }).join();  // as from a driver's thread
    }
    // The session ends: if it were idle, it would have to leave the lane that it got once more.
  };
  std::vector<std::unique_ptr<Gate>> gates;
  for (uint64_t id = 1; id <= kSessions; ++id) {
    gates.push_back(std::make_unique<Gate>(&board, id, [&sleepers, id] {
      const std::lock_guard<std::mutex> lock(sleepers[id].mutex);
      ++sleepers[id].rings;
      sleepers[id].changed.notify_all();
    }));
    board.SetLane(id, 7);
  }
  board.SetDaemon(false);
  std::vector<std::thread> threads;
  for (uint64_t id = 1; id <= kSessions; ++id)
    threads.emplace_back(live, std::move(gates[id - 1]), &sleepers[id]);
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(overlap.load());
}

}  // namespace
}  // namespace worker
