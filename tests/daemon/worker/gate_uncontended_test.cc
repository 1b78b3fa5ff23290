// Which reports lanewayd gets of a session that is the only one.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "daemon/worker/gate.h"

namespace worker {
namespace {

namespace wire = ipc::control;

constexpr wire::LanePolicy kUncontended{.lane = 7, .contended = 0};

// Session 1 works in lane 7, and lanewayd has said that there is no other session.
class UncontendedTest : public ::testing::Test {
 protected:
  UncontendedTest()
      : board_([this](const wire::WorkerToDaemon& message) { told_.push_back(message); }),
        gate_(std::make_unique<Gate>(&board_, 1, [this] { ++woken_; })) {
    gate_->ReportRunnable();
    board_.Grant(1, 7);
    board_.SetPolicy(kUncontended);
    told_.clear();
  }
  // The reports about the session. REQUIRES: there is no other message.
  std::vector<wire::GateEvent> Reports() const {
    std::vector<wire::GateEvent> events;
    for (const wire::WorkerToDaemon& message : told_)
      events.push_back(std::get<wire::GateReport>(message).event);
    return events;
  }

  using Events = std::vector<wire::GateEvent>;
  std::vector<wire::WorkerToDaemon> told_;
  int woken_ = 0;
  Board board_;
  std::unique_ptr<Gate> gate_;
};

TEST_F(UncontendedTest, ShortIdlePeriodIsNotReported) {
  for (int i = 0; i < 3; ++i) {
    gate_->ReportIdle(true);
    EXPECT_TRUE(gate_->idle() && gate_->idle_untold());
    gate_->ReportRunnable();
    EXPECT_FALSE(gate_->idle() || gate_->idle_untold());
  }
  EXPECT_EQ(gate_->state(), GateState::kOpen);
  EXPECT_TRUE(told_.empty());
}

TEST_F(UncontendedTest, LongIdlePeriodAndItsEndAreEachReportedOnce) {
  gate_->ReportIdle(false);
  gate_->FlushIdleReport();
  gate_->FlushIdleReport();
  EXPECT_FALSE(gate_->idle_untold());
  gate_->ReportRunnable();
  EXPECT_EQ(Reports(), (Events{wire::GateEvent::kStalled, wire::GateEvent::kRunnable}));
}

TEST_F(UncontendedTest, IdleIsReportedWhenAnotherSessionComes) {
  gate_->ReportIdle(true);
  woken_ = 0;
  board_.SetPolicy({.lane = 7});
  EXPECT_EQ(Reports(), Events{wire::GateEvent::kIdle});
  EXPECT_EQ(woken_, 1);
  EXPECT_FALSE(gate_->uncontended());
  gate_->ReportRunnable();
  gate_->ReportIdle(true);
  EXPECT_EQ(Reports().size(), 3u) << "each idle period is reported from now on";
}

TEST_F(UncontendedTest, IdleIsReportedBeforeEachDecisionAboutTheSession) {
  const std::vector<std::function<void()>> decisions = {
      [this] { board_.Revoke(1); },       [this] { board_.SetPaused(1, true); },
      [this] { board_.SetLane(1, 8); },   [this] { gate_->OnSwappedOut(); },
      [this] { board_.SetDaemon(true); }, [this] { board_.SetDaemon(false); }};
  for (size_t i = 0; i < decisions.size(); ++i) {
    gate_->OnSwappedIn();
    board_.SetDaemon(true);
    board_.SetPaused(1, false);
    board_.SetLane(1, 7);
    gate_->ReportRunnable();
    board_.Grant(1, 7);
    board_.SetPolicy(kUncontended);
    told_.clear();
    gate_->ReportIdle(true);
    ASSERT_TRUE(told_.empty()) << i;
    decisions[i]();
    EXPECT_EQ(Reports(), Events{wire::GateEvent::kIdle}) << i;
    EXPECT_EQ(board_.View(1).wants, false) << i;
  }
}

TEST_F(UncontendedTest, RevokedSessionReportsIdleAtOnce) {
  board_.Revoke(1);
  gate_->ReportIdle(true);
  EXPECT_EQ(Reports(), Events{wire::GateEvent::kIdle});
}

TEST_F(UncontendedTest, IdleIsReportedBeforeTheSessionEnds) {
  gate_->ReportIdle(true);
  gate_.reset();
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_EQ(std::get<wire::GateReport>(told_[0]).event, wire::GateEvent::kIdle);
  EXPECT_EQ(std::get<wire::Switched>(told_[1]).from, 1u);
}

}  // namespace
}  // namespace worker
