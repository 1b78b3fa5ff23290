// A request for memory step by step, and its loop over a session that is not there.
#include "daemon/worker/room_request.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace worker {
namespace {

using Step = RoomRequest::Step;
using Event = RoomRequest::Event;

// --- the machine ---------------------------------------------------------------------------------

TEST(RoomRequestTest, EachEventLeadsToOneStep) {
  struct Row {
    std::vector<Event> events;
    Step step;
  };
  const std::vector<Row> rows = {
      {{}, Step::kAsk},
      {{Event::kDecided}, Step::kTry},
      {{Event::kUndecided}, Step::kTry},
      {{Event::kRefused}, Step::kRecount},
      {{Event::kRefused, Event::kGaveBack}, Step::kAsk},
      {{Event::kRefused, Event::kGaveNothing}, Step::kDone},
      {{Event::kUndecided, Event::kDaemonCame}, Step::kAsk},
      {{Event::kDecided, Event::kMadeLast}, Step::kDone},
      {{Event::kDecided, Event::kFailed}, Step::kDone},
      {{Event::kDecided, Event::kMade}, Step::kTry},
      {{Event::kDecided, Event::kNoRoom}, Step::kPoll},
      {{Event::kDecided, Event::kNoRoom, Event::kAllFree}, Step::kTry},
      {{Event::kDecided, Event::kNoRoom, Event::kAllFree, Event::kNoRoom}, Step::kAwaitOthers},
      {{Event::kDecided, Event::kNoRoom, Event::kStillUsed, Event::kNoRoom}, Step::kAwaitDevice},
      {{Event::kDecided, Event::kNoRoom, Event::kAllFree, Event::kNoRoom, Event::kWaited},
       Step::kPoll},
      {{Event::kDecided, Event::kNoRoom, Event::kAllFree, Event::kNoRoom, Event::kNobodyHolds},
       Step::kDone},
      {{Event::kDecided, Event::kNoRoom, Event::kAllFree, Event::kMade, Event::kNoRoom},
       Step::kPoll},
      {{Event::kEnded}, Step::kDone},
  };
  for (size_t row = 0; row < rows.size(); ++row) {
    RoomRequest request(true);
    for (const Event event : rows[row].events) request.On(event);
    EXPECT_EQ(request.step(), rows[row].step) << "row " << row;
  }
}

// --- the loop ------------------------------------------------------------------------------------

class RoomRequestLoopTest : public ::testing::Test, public RoomWorld {
 protected:
  bool Alive() const override { return alive_; }
  bool HasDaemon() const override { return has_daemon_; }
  bool PollFrees() override {
    if (pending_frees_ == 0) return true;
    return --pending_frees_ == 0;
  }
  void AwaitDevice() override { log_ += "device "; }
  bool AwaitOthers(uint64_t bytes) override {
    log_ += "others:" + std::to_string(bytes) + " ";
    if (others_hold_ == 0) return false;
    --others_hold_;
    return true;
  }
  bool GaveBackSinceAsked() override { return std::exchange(gave_back_, false); }

  RoomPlan Plan() {
    RoomPlan plan;
    plan.ask = [this]() -> RoomPlan::Answer {
      log_ += "ask ";
      const Event event = answers_.empty() ? Event::kDecided : answers_.front();
      if (!answers_.empty()) answers_.pop_front();
      return {event, event == Event::kRefused ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS};
    };
    plan.take = [this] {
      ++taken_;
      return true;
    };
    plan.undo = [this] { --taken_; };
    plan.attempts = {{[this] {
                        log_ += "try ";
                        if (on_try_) on_try_();
                        if (results_.empty()) return CUDA_SUCCESS;
                        const CUresult result = results_.front();
                        results_.pop_front();
                        return result;
                      },
                      [] { return uint64_t{8}; }}};
    return plan;
  }
  GrantResult Run() { return RunRoomRequest(this, Plan()); }

  static constexpr CUresult kNoRoom = CUDA_ERROR_OUT_OF_MEMORY;
  bool alive_ = true, has_daemon_ = false, gave_back_ = false;
  int pending_frees_ = 0, others_hold_ = 0, taken_ = 0;
  std::deque<Event> answers_;
  std::deque<CUresult> results_;
  std::function<void()> on_try_;
  std::string log_;
};

TEST_F(RoomRequestLoopTest, WhatIsGrantedAndMadeIsTaken) {
  EXPECT_EQ(Run().grant, Grant::kGranted);
  EXPECT_EQ(log_, "ask try ");
  EXPECT_EQ(taken_, 1);
}

TEST_F(RoomRequestLoopTest, ARefusalIsFinalUnlessMemoryCameBack) {
  answers_ = {Event::kRefused};
  const GrantResult refused = Run();
  EXPECT_EQ(refused.grant, Grant::kRefused);
  EXPECT_EQ(ToCall(refused), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(taken_, 0);
  answers_ = {Event::kRefused};
  gave_back_ = true;
  log_.clear();
  EXPECT_EQ(Run().grant, Grant::kGranted);
  EXPECT_EQ(log_, "ask ask try ");
}

TEST_F(RoomRequestLoopTest, WaitsForTheDeviceBeforeItWaitsForOthers) {
  pending_frees_ = 4;  // one poll before the first try
  others_hold_ = 1;
  results_ = {kNoRoom, kNoRoom, kNoRoom, kNoRoom};
  EXPECT_EQ(Run().grant, Grant::kGranted);
  EXPECT_EQ(log_, "ask try try device try device try others:8 try ");
}

TEST_F(RoomRequestLoopTest, WhatNobodyHoldsIsRefusedAndGivenBack) {
  results_ = {kNoRoom, kNoRoom};
  const GrantResult result = Run();
  EXPECT_EQ(result.grant, Grant::kRefused);
  EXPECT_EQ(ToCall(result), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(log_, "ask try try others:8 ");
  EXPECT_EQ(taken_, 0);
}

// The daemon counts on what this session waits for.
TEST_F(RoomRequestLoopTest, ADaemonThatComesIsAskedAndKnowsOfOneGrant) {
  answers_ = {Event::kUndecided, Event::kDecided};
  results_ = {kNoRoom};
  on_try_ = [this] { has_daemon_ = true; };
  EXPECT_EQ(Run().grant, Grant::kGranted);
  EXPECT_EQ(log_, "ask try ask try ");
  EXPECT_EQ(taken_, 1);
}

TEST_F(RoomRequestLoopTest, AnotherFailureIsTheDrivers) {
  results_ = {CUDA_ERROR_INVALID_VALUE};
  const GrantResult result = Run();
  EXPECT_EQ(result.grant, Grant::kFailed);
  EXPECT_EQ(ToCall(result), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(taken_, 0);
}

TEST_F(RoomRequestLoopTest, ASessionThatEndsWaitsNoLonger) {
  results_ = {kNoRoom};
  on_try_ = [this] { alive_ = false; };
  EXPECT_EQ(Run().grant, Grant::kEnded);
  EXPECT_EQ(log_, "ask try ");
  EXPECT_EQ(taken_, 0);
}

TEST_F(RoomRequestLoopTest, AttemptsAreMadeInOrderAndOneThatIsNotRepeatedFails) {
  RoomPlan plan = Plan();
  plan.ask = {};
  plan.attempts.push_back({[] { return kNoRoom; }, {}});
  EXPECT_EQ(RunRoomRequest(this, plan).grant, Grant::kFailed);
  EXPECT_EQ(log_, "try ");
}

}  // namespace
}  // namespace worker
