#include "daemon/control/scheduler_port.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace control {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

// Keeps what it is to execute, and runs `then` in the middle of each action.
class Recorder : public ActionExecutor {
 public:
  void BeforeEvent() override { ++events_; }
  void BeforeTimer() override { ++timers_; }
  void Execute(const scheduler::Action& action) override {
    EXPECT_FALSE(std::exchange(inside_, true)) << "one action inside another";
    executed_.push_back(action);
    if (then_) then_(action);
    inside_ = false;
  }

  template <class A>
  size_t Count() const {
    size_t count = 0;
    for (const scheduler::Action& action : executed_) count += std::holds_alternative<A>(action);
    return count;
  }

  int events_ = 0;
  int timers_ = 0;
  std::vector<scheduler::Action> executed_;
  std::function<void(const scheduler::Action& action)> then_;

 private:
  bool inside_ = false;
};

class SchedulerPortTest : public ::testing::Test {
 protected:
  static scheduler::SessionArrived Arrived(uint64_t id) {
    scheduler::SessionArrived arrived;
    arrived.session = id;
    return arrived;
  }

  void SetUp() override {
    port_.Serve();
    port_.Apply(scheduler::CapacityChanged{0, kGiB, 0, 0});
  }

  common::EventLoop loop_;
  Recorder recorder_;
  int64_t now_us_ = 1'000'000;
  static scheduler::Limits TwoInOneLane() {
    scheduler::Limits limits;
    limits.sessions_max = 2;
    limits.lanes_max = 1;
    return limits;
  }
  SchedulerPort port_{"rr", TwoInOneLane(), &loop_, &recorder_, [this] { return now_us_; }};
};

TEST_F(SchedulerPortTest, ActionsReachTheExecutorInTheirOrder) {
  port_.Apply(Arrived(1));
  ASSERT_FALSE(recorder_.executed_.empty());
  EXPECT_TRUE(std::holds_alternative<scheduler::Admit>(recorder_.executed_[0]));
  EXPECT_EQ(recorder_.events_, 2);
}

TEST_F(SchedulerPortTest, AnEventOutOfAnActionIsExecutedAfterTheActionsThatWait) {
  recorder_.then_ = [this](const scheduler::Action& action) {
    const scheduler::Admit* const admit = std::get_if<scheduler::Admit>(&action);
    if (admit != nullptr && admit->session == 1) port_.Apply(Arrived(2));
  };
  port_.Apply(Arrived(1));
  EXPECT_EQ(recorder_.Count<scheduler::Admit>(), 2u);
  EXPECT_EQ(port_.state().sessions.size(), 2u);
  // What was decided for session 1 comes before the admission of session 2.
  size_t second = 0;
  while (std::get_if<scheduler::Admit>(&recorder_.executed_[second]) == nullptr ||
         std::get<scheduler::Admit>(recorder_.executed_[second]).session != 2)
    ++second;
  for (size_t i = second; i < recorder_.executed_.size(); ++i) {
    const auto* assign = std::get_if<scheduler::AssignLane>(&recorder_.executed_[i]);
    EXPECT_TRUE(assign == nullptr || assign->session == 2);
  }
}

// Its last session leaves a lane before the next session of that lane is reported.
TEST_F(SchedulerPortTest, BeforeItServesOnlyAdoptedSessionsAreDecidedAbout) {
  SchedulerPort port{"rr", TwoInOneLane(), &loop_, &recorder_, [this] { return now_us_; }};
  port.Apply(scheduler::CapacityChanged{0, kGiB, 0, 0});
  port.Apply(scheduler::SessionAdopted{Arrived(1), 0, 10, 7, 10});
  port.Apply(scheduler::Runnable{1});
  port.Apply(scheduler::SessionLeft{1});
  port.Apply(scheduler::SessionAdopted{Arrived(2), 0, 10, 7, 10});
  port.Apply(scheduler::Runnable{2});
  EXPECT_TRUE(recorder_.executed_.empty());
  port.Serve();
  EXPECT_TRUE(recorder_.executed_.empty());
  port.ApplyHeld();
  EXPECT_EQ(recorder_.Count<scheduler::ResizeLane>(), 0u) << "the lane is the other session's";
  EXPECT_EQ(port.state().lanes.count(7), 1u);
  ASSERT_GE(recorder_.Count<scheduler::Grant>(), 1u);
  EXPECT_EQ(std::get<scheduler::Grant>(recorder_.executed_.back()).session, 2u);
  const int events = recorder_.events_;
  port.ApplyHeld();
  EXPECT_EQ(recorder_.events_, events) << "held events are applied once";
}

// Two sessions in one lane would write over each other's memory.
TEST_F(SchedulerPortTest, ASessionWithoutALaneGetsNoneThatIsReportedLater) {
  SchedulerPort port{"rr", TwoInOneLane(), &loop_, &recorder_, [this] { return now_us_; }};
  port.Apply(scheduler::CapacityChanged{0, kGiB, 0, 0});
  port.Apply(scheduler::SessionAdopted{.arrived = Arrived(1)});
  port.Apply(scheduler::SessionAdopted{Arrived(2), 0, 10, 1, 10});
  port.Serve();
  ASSERT_NE(port.state().Find(1), nullptr);
  EXPECT_NE(port.state().Find(1)->lane, 0);
  EXPECT_NE(port.state().Find(1)->lane, 1);
  EXPECT_EQ(port.state().Find(2)->lane, 1);
}

TEST_F(SchedulerPortTest, ASessionWithoutALaneGetsNoneThatTheKeeperHas) {
  SchedulerPort port{"rr", TwoInOneLane(), &loop_, &recorder_, [this] { return now_us_; }};
  port.Apply(scheduler::CapacityChanged{0, kGiB, 0, 0});
  port.Apply(scheduler::SessionAdopted{.arrived = Arrived(1)});
  port.Apply(scheduler::LaneFound{1, 0});
  port.Serve();
  EXPECT_EQ(port.state().Find(1)->lane, 2);
}

TEST_F(SchedulerPortTest, TheTimerIsAppliedWhenItIsDue) {
  port_.Serve();
  for (const uint64_t id : {1, 2}) {
    port_.Apply(Arrived(id));
    port_.Apply(scheduler::Runnable{id});
  }
  ASSERT_LT(scheduler::NextTimerUs(port_.state()), scheduler::kUnlimited);
  now_us_ = scheduler::NextTimerUs(port_.state());
  port_.Apply(scheduler::Progress{});  // arms it anew: it is due now
  loop_.RunOnce();
  EXPECT_EQ(recorder_.timers_, 1);
}

TEST_F(SchedulerPortTest, AfterItsEndNoTimerIsArmed) {
  port_.Serve();
  port_.Stop();
  for (const uint64_t id : {1, 2}) {
    port_.Apply(Arrived(id));
    port_.Apply(scheduler::Runnable{id});
  }
  now_us_ = scheduler::NextTimerUs(port_.state());
  loop_.After(0, [] {});
  loop_.RunOnce();
  EXPECT_EQ(recorder_.timers_, 0);
}

}  // namespace
}  // namespace control
