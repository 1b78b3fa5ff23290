#include "shim/inprocess/gate.h"

#include <algorithm>
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
  const base::MutexLock turn(&turn_);
  ipc::BoundaryInfo info;
  const bool boundary = iterations_->Before(op, &info);
  if (boundary) CountBoundary(info);
  if (!open_.load(std::memory_order_acquire)) WaitForGrant(boundary);
  ++passed_;
  working_.fetch_add(1, std::memory_order_relaxed);
}

void Gate::EndWait() {
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  iterations_->NoteSynchronised();
}

void Gate::WaitForGrant(bool boundary) {
  const base::MutexLock lock(&state_);
  if (session_id_ == 0) return;
  if (resting_.exchange(false)) {
    hooks_.tell(wire::GateReport{session_id_, wire::GateEvent::kRunnable});
    hooks_.wake();
  }
  if (granted_ && revoked_ && (boundary || !Iterates())) LeaveLane();
  if (!granted_ && session_id_ != 0) {
    ipc::SessionPage* const page = page_.load();
    const int64_t begin_us = NowUs();
    page->progress.wait_since_us.store(static_cast<uint64_t>(begin_us), std::memory_order_relaxed);
    page->progress.wait.store(ipc::WaitState::kTurn, std::memory_order_release);
    while (!granted_ && session_id_ != 0) granted_changed_.Wait(&state_);
    page->progress.wait.store(ipc::WaitState::kNothing, std::memory_order_release);
    ipc::CountWait(&page->iteration_times, static_cast<uint64_t>(NowUs() - begin_us));
  }
  if (!clock_.runs()) clock_.Start(NowUs());
  Refresh();
}

// The lane is another's only when the device has finished with what passed here. What other threads
// are submitting ends by itself: it has passed already.
void Gate::LeaveLane() {
  state_.Unlock();
  clock_.Stop(progress(), NowUs());
  std::atomic<uint32_t> never{0};
  for (int i = 0; i < kSubmitPatience && working_.load(std::memory_order_acquire) != 0; ++i) {
    ipc::FutexWait(&never, 0, 100);
  }
  hooks_.drain();
  state_.Lock();
  ipc::CountSwitch(&page_.load()->iteration_times);
  if (granted_) HandOver();
}

void Gate::HandOver() {
  granted_ = revoked_ = false;
  Refresh();
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
  open_.store(session_id_ == 0 || (granted_ && !revoked_ && !resting_.load()),
              std::memory_order_release);
}

void Gate::SetDaemon(uint64_t session_id, ipc::SessionPage* page) {
  const base::MutexLock lock(&state_);
  session_id_ = session_id;
  if (page != nullptr) page_.store(page, std::memory_order_release);
  granted_ = revoked_ = false;
  resting_.store(true);  // the next operation asks
  Refresh();
  granted_changed_.NotifyAll();
}

void Gate::Grant(uint64_t lane) {
  const base::MutexLock lock(&state_);
  lane_ = lane;
  granted_ = true;
  revoked_ = false;
  Refresh();
  granted_changed_.NotifyAll();
}

void Gate::Revoke() {
  const base::MutexLock lock(&state_);
  if (!granted_) return;
  revoked_ = true;
  if (resting_.load()) {
    HandOver();
  } else {
    Refresh();
  }
}

// --- rest ----------------------------------------------------------------------------------------

void Gate::RestIfSilent() {
  if (resting()) return;
  const auto silent = [this] {
    return working_.load(std::memory_order_acquire) == 0 &&
           waiting_.load(std::memory_order_relaxed) == 0;
  };
  {
    if (!turn_.TryLock()) return;  // a thread that waits for a grant has it
    const base::MutexLock turn(&turn_, std::adopt_lock);
    if (std::exchange(passed_seen_, passed_) != passed_ || !silent()) return;
  }
  hooks_.drain();
  if (!turn_.TryLock()) return;
  const base::MutexLock turn(&turn_, std::adopt_lock);
  if (passed_seen_ != passed_ || !silent()) return;
  clock_.Stop(progress(), NowUs());
  const base::MutexLock lock(&state_);
  if (session_id_ == 0) return;
  resting_.store(true);
  Refresh();
  hooks_.tell(wire::GateReport{session_id_, wire::GateEvent::kIdle});
  if (granted_ && revoked_) HandOver();
}

void Gate::Open() { SetDaemon(0, nullptr); }

}  // namespace shim::inprocess
