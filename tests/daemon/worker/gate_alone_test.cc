// What lanewayd hears of a session that is the only one.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "daemon/worker/gate.h"

namespace worker {
namespace {

namespace wire = ipc::control;

// Session 1, open in lane 7, of which lanewayd said that nobody else is there.
class AloneTest : public ::testing::Test {
 protected:
  AloneTest()
      : board_([this](const wire::WorkerToDaemon& message) { told_.push_back(message); }),
        gate_(std::make_unique<Gate>(&board_, 1, [this] { ++woken_; })) {
    gate_->Want();
    board_.Grant(1, 7);
    board_.SetAlone(7, true);
    told_.clear();
  }
  // What it was told of the session, and nothing else.
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

TEST_F(AloneTest, AShortRestIsNotTold) {
  for (int i = 0; i < 3; ++i) {
    gate_->Rest(true);
    EXPECT_TRUE(gate_->resting() && gate_->rests_untold());
    gate_->Want();
    EXPECT_FALSE(gate_->resting() || gate_->rests_untold());
  }
  EXPECT_EQ(gate_->state(), GateState::kOpen);
  EXPECT_TRUE(told_.empty());
}

TEST_F(AloneTest, ALongRestIsToldOnceAndSoIsItsEnd) {
  gate_->Rest(false);
  gate_->TellRest();
  gate_->TellRest();
  EXPECT_FALSE(gate_->rests_untold());
  gate_->Want();
  EXPECT_EQ(Reports(), (Events{wire::GateEvent::kStalled, wire::GateEvent::kRunnable}));
}

TEST_F(AloneTest, WhoeverComesHearsThatItRests) {
  gate_->Rest(true);
  woken_ = 0;
  board_.SetAlone(7, false);
  EXPECT_EQ(Reports(), Events{wire::GateEvent::kIdle});
  EXPECT_EQ(woken_, 1);
  EXPECT_FALSE(gate_->alone());
  gate_->Want();
  gate_->Rest(true);
  EXPECT_EQ(Reports().size(), 3u) << "from now on each is told";
}

TEST_F(AloneTest, WhatIsDecidedAboutItIsDecidedOfWhoRests) {
  const std::vector<std::function<void()>> decisions = {
      [this] { board_.Revoke(1); },       [this] { board_.SetPaused(1, true); },
      [this] { board_.SetLane(1, 8); },   [this] { gate_->Abandon(); },
      [this] { board_.SetDaemon(true); }, [this] { board_.SetDaemon(false); }};
  for (size_t i = 0; i < decisions.size(); ++i) {
    gate_->Return();
    board_.SetDaemon(true);
    board_.SetPaused(1, false);
    board_.SetLane(1, 7);
    gate_->Want();
    board_.Grant(1, 7);
    board_.SetAlone(7, true);
    told_.clear();
    gate_->Rest(true);
    ASSERT_TRUE(told_.empty()) << i;
    decisions[i]();
    EXPECT_EQ(Reports(), Events{wire::GateEvent::kIdle}) << i;
    EXPECT_EQ(board_.View(1).wants, false) << i;
  }
}

TEST_F(AloneTest, WhoIsToLeaveTellsAtOnce) {
  board_.Revoke(1);
  gate_->Rest(true);
  EXPECT_EQ(Reports(), Events{wire::GateEvent::kIdle});
}

TEST_F(AloneTest, WhoGoesTellsBefore) {
  gate_->Rest(true);
  gate_.reset();
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_EQ(std::get<wire::GateReport>(told_[0]).event, wire::GateEvent::kIdle);
  EXPECT_EQ(std::get<wire::Switched>(told_[1]).from, 1u);
}

}  // namespace
}  // namespace worker
