// The gate of a program in in-process mode: when it asks, waits, leaves and is reported idle.
#include "base/mutex.h"
#include "shim/inprocess/gate.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace shim::inprocess {
namespace {

namespace wire = ipc::control;

constexpr uint64_t kSession = 7, kLane = 3;

class InprocessGateTest : public ::testing::Test {
 protected:
  InprocessGateTest()
      : page_(std::make_unique<ipc::SessionPage>()),
        iterations_(iterations::From::kHeader, nullptr),
        gate_({[this](const wire::ProgramToDaemon& message) { Tell(message); }, [this] { Drain(); },
               [] {}},
              &iterations_) {}

  void Tell(const wire::ProgramToDaemon& message) {
    const base::MutexLock lock(&mutex_);
    told_.push_back(message);
    changed_.NotifyAll();
  }
  void Drain() {
    ++drained_;
    if (on_drain_) on_drain_();
  }
  // The message of that number, from 0, when it has been told.
  wire::ProgramToDaemon Told(size_t number) {
    base::MutexLock lock(&mutex_);
    while (told_.size() <= number) changed_.Wait(&mutex_);
    return told_[number];
  }
  size_t Count() {
    const base::MutexLock lock(&mutex_);
    return told_.size();
  }
  void ExpectReport(size_t number, wire::GateEvent event) {
    const wire::ProgramToDaemon message = Told(number);
    const wire::GateReport* const report = std::get_if<wire::GateReport>(&message);
    ASSERT_NE(report, nullptr);
    EXPECT_EQ(report->session_id, kSession);
    EXPECT_EQ(report->event, event);
  }
  void ExpectFree(size_t number) {
    const wire::ProgramToDaemon message = Told(number);
    const wire::Switched* const switched = std::get_if<wire::Switched>(&message);
    ASSERT_NE(switched, nullptr);
    EXPECT_TRUE(switched->lane == kLane && switched->from == kSession && switched->to == 0);
  }
  void Operate() {
    gate_.Pass({});
    gate_.Leave();
  }
  void OperateFirst() {
    iterations_.Mark(ipc::BoundarySource::kHeader);
    Operate();
  }
  // With its first operation passed.
  void BeginGranted() {
    gate_.SetDaemon(kSession, page_.get());
    gate_.Grant(kLane);
    Operate();
    ExpectReport(0, wire::GateEvent::kRunnable);
  }

  const std::unique_ptr<ipc::SessionPage> page_;
  base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<wire::ProgramToDaemon> told_ GUARDED_BY(mutex_);
  int drained_ = 0;
  std::function<void()> on_drain_;
  iterations::Iterations iterations_;
  Gate gate_;
};

TEST_F(InprocessGateTest, WithoutADaemonEverythingPasses) {
  OperateFirst();
  Operate();
  EXPECT_EQ(Count(), 0u);
}

TEST_F(InprocessGateTest, AsksOnceAndWaitsForTheGrant) {
  gate_.SetDaemon(kSession, page_.get());
  std::thread program([this] {
    Operate();
    Operate();
  });
  ExpectReport(0, wire::GateEvent::kRunnable);
  gate_.Grant(kLane);
  program.join();
  EXPECT_EQ(Count(), 1u);
  EXPECT_GE(page_->progress.held_us.load(), 0u);
}

TEST_F(InprocessGateTest, LeavesAtItsBoundaryWhenTheDeviceIsDone) {
  BeginGranted();
  OperateFirst();
  page_->progress.last_iteration_us.store(uint64_t{1} << 40);  // however slow this test is
  gate_.Revoke();
  Operate();  // its iteration goes on
  EXPECT_EQ(Count(), 1u);
  std::thread program([this] { OperateFirst(); });
  ExpectFree(1);
  gate_.Grant(kLane);
  program.join();
  EXPECT_EQ(drained_, 1);
  EXPECT_EQ(page_->progress.iterations.load(), 2u);
  EXPECT_EQ(page_->iteration_times.switches.load(), 1u);
}

TEST_F(InprocessGateTest, WithoutIterationsItLeavesBetweenTwoOperations) {
  BeginGranted();
  gate_.Revoke();
  std::thread program([this] { Operate(); });
  ExpectFree(1);
  gate_.Grant(kLane);
  program.join();
}

TEST_F(InprocessGateTest, RevokeThatIsTakenBackStopsNoThread) {
  BeginGranted();
  gate_.Revoke();
  gate_.Grant(kLane);
  Operate();
  EXPECT_EQ(Count(), 1u);
}

TEST_F(InprocessGateTest, SilentProgramIsIdleAndGivesItsLaneAtOnce) {
  BeginGranted();
  gate_.ReportIdleIfSilent();  // an operation has passed since
  EXPECT_EQ(Count(), 1u);
  gate_.BeginWait();
  gate_.ReportIdleIfSilent();  // the program waits for its device
  EXPECT_EQ(Count(), 1u);
  gate_.EndWait();
  gate_.ReportIdleIfSilent();
  ExpectReport(1, wire::GateEvent::kIdle);
  gate_.Revoke();
  ExpectFree(2);
  std::thread program([this] { Operate(); });
  ExpectReport(3, wire::GateEvent::kRunnable);
  gate_.Grant(kLane);
  program.join();
}

TEST_F(InprocessGateTest, LaneLostWhileTheDeviceFinishesIsNotReportedFree) {
  BeginGranted();
  gate_.Revoke();
  on_drain_ = [this] { gate_.Open(); };
  Operate();
  EXPECT_EQ(drained_, 1);
  EXPECT_EQ(Count(), 1u);
}

TEST_F(InprocessGateTest, GrantWhileTheDeviceFinishesDoesNotKeepTheLane) {
  BeginGranted();
  gate_.Revoke();
  on_drain_ = [this] { gate_.Grant(kLane); };
  std::thread program([this] { Operate(); });
  ExpectFree(1);
  gate_.Grant(kLane);
  program.join();
}

TEST_F(InprocessGateTest, NoThreadWaitsForADaemonThatIsGone) {
  gate_.SetDaemon(kSession, page_.get());
  std::thread program([this] { Operate(); });
  ExpectReport(0, wire::GateEvent::kRunnable);
  gate_.Open();
  program.join();
  Operate();
  EXPECT_EQ(Count(), 1u);
}

}  // namespace
}  // namespace shim::inprocess
