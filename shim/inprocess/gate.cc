#include "shim/inprocess/gate.h"

#include <mutex>
#include <utility>

#include "base/mutex.h"
#include "ipc/futex.h"

namespace shim::inprocess {
namespace {

namespace wire = ipc::control;

constexpr int kSubmitPatience = 10'000;  // times 100 us, for another thread's operation

int64_t NowUs() { return ipc::MonotonicNs() / 1000; }

}  // namespace

Gate::Gate(Hooks hooks, iterations::Iterations* iterations)
    : hooks_(std::move(hooks)), iterations_(iterations) {}

// --- the program ---------------------------------------------------------------------------------

void Gate::Pass(const iterations::Op& op) {
  const base::MutexLock passing(&passing_);
  ipc::BoundaryInfo info;
  const bool boundary = iterations_->Before(op, &info);
  if (boundary) CountBoundary(info);
  if (!open_.load(std::memory_order_acquire)) WaitForGrant(boundary);
  passed_.Add();
  working_.fetch_add(1, std::memory_order_relaxed);
}

void Gate::EndWait() {
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  iterations_->NoteSynchronised();
}

void Gate::WaitForGrant(bool boundary) {
  const base::MutexLock lock(&state_);
  if (session_id_ == 0) return;
  if (idle_.exchange(false)) {
    hooks_.tell(wire::GateReport{session_id_, wire::GateEvent::kRunnable});
    hooks_.wake();
  }
  if (turn_ == ipc::Turn::kRevoked && (boundary || !Iterates())) LeaveLane();
  if (!MayWork(turn_) && session_id_ != 0) {
    ipc::SessionPage* const page = page_.load();
    const int64_t begin_us = NowUs();
    page->progress.wait_since_us.store(static_cast<uint64_t>(begin_us), std::memory_order_relaxed);
    page->progress.wait.store(ipc::WaitState::kTurn, std::memory_order_release);
    while (!MayWork(turn_) && session_id_ != 0) granted_changed_.Wait(&state_);
    page->progress.wait.store(ipc::WaitState::kNothing, std::memory_order_release);
    ipc::CountWait(&page->iteration_times, static_cast<uint64_t>(NowUs() - begin_us));
  }
  if (!clock_.runs()) clock_.Start(NowUs());
  Refresh();
}

// The lane is free only when the device has finished with all that passed here. Operations that
// other threads are submitting have passed already, so their submission ends by itself.
void Gate::LeaveLane() {
  Move(ipc::TurnEvent::kClose);
  state_.Unlock();
  clock_.Stop(progress(), NowUs());
  std::atomic<uint32_t> never{0};
  for (int i = 0; i < kSubmitPatience && working_.load(std::memory_order_acquire) != 0; ++i) {
    ipc::FutexWait(&never, 0, 100);
  }
  hooks_.drain();
  state_.Lock();
  ipc::CountSwitch(&page_.load()->iteration_times);
  Move(ipc::TurnEvent::kDeviceDone);
}

// A lane that was handed over is reported free; one that was lost to another daemon is not.
void Gate::Move(ipc::TurnEvent event) {
  const ipc::Turn before = turn_;
  turn_ = ipc::Step(before, event);
  Refresh();
  if (before == ipc::Turn::kDraining && event == ipc::TurnEvent::kDeviceDone)
    hooks_.tell(wire::Switched{lane_, session_id_, 0, NowUs()});
}

bool Gate::Iterates() {
  clock_.Count(progress(), NowUs());
  return clock_.Iterates(*progress());
}

void Gate::CountBoundary(const ipc::BoundaryInfo& info) {
  ipc::SessionPage* const page = page_.load();
  if (page == nullptr) return;
  const int64_t now_us = NowUs();
  const uint64_t took_us = clock_.EndIteration(info, &page->progress, now_us);
  ipc::CountIteration(&page->iteration_times, static_cast<uint64_t>(now_us), took_us);
}

ipc::Progress* Gate::progress() const {
  ipc::SessionPage* const page = page_.load();
  return page == nullptr ? nullptr : &page->progress;
}

// --- lanewayd ------------------------------------------------------------------------------------

void Gate::Refresh() {
  open_.store(session_id_ == 0 || (turn_ == ipc::Turn::kHolding && !idle_.load()),
              std::memory_order_release);
}

void Gate::SetDaemon(uint64_t session_id, ipc::SessionPage* page) {
  const base::MutexLock lock(&state_);
  session_id_ = session_id;
  if (page != nullptr) page_.store(page, std::memory_order_release);
  idle_.store(true);  // the next operation asks
  Move(ipc::TurnEvent::kLaneLost);
  granted_changed_.NotifyAll();
}

void Gate::Grant(uint64_t lane) {
  const base::MutexLock lock(&state_);
  lane_ = lane;
  Move(ipc::TurnEvent::kGrant);
  granted_changed_.NotifyAll();
}

// An idle program has finished on its device: its lane is free at once.
void Gate::Revoke() {
  const base::MutexLock lock(&state_);
  Move(ipc::TurnEvent::kRevoke);
  if (!idle_.load()) return;
  Move(ipc::TurnEvent::kClose);
  Move(ipc::TurnEvent::kDeviceDone);
}

// --- idle ----------------------------------------------------------------------------------------

bool Gate::IsSilent() const {
  return working_.load(std::memory_order_acquire) == 0 &&
         waiting_.load(std::memory_order_relaxed) == 0;
}

void Gate::ReportIdleIfSilent() {
  if (idle()) return;
  {
    if (!passing_.TryLock()) return;  // a thread that waits for a grant has it
    const base::MutexLock passing(&passing_, std::adopt_lock);
    if (passed_.Look() || !IsSilent()) return;
  }
  hooks_.drain();
  if (!passing_.TryLock()) return;
  const base::MutexLock passing(&passing_, std::adopt_lock);
  if (passed_.grew() || !IsSilent()) return;
  clock_.Stop(progress(), NowUs());
  const base::MutexLock lock(&state_);
  if (session_id_ == 0) return;
  idle_.store(true);
  Refresh();
  hooks_.tell(wire::GateReport{session_id_, wire::GateEvent::kIdle});
  if (turn_ != ipc::Turn::kRevoked) return;
  Move(ipc::TurnEvent::kClose);
  Move(ipc::TurnEvent::kDeviceDone);
}

void Gate::Open() { SetDaemon(0, nullptr); }

}  // namespace shim::inprocess
