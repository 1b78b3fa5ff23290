#include "daemon/worker/board.h"

#include <cassert>
#include <utility>

namespace worker {
namespace {

// A switch is shorter than the wake of a thread that sleeps for the mutex.
class SCOPED_CAPABILITY SpinningLock {
 public:
  // The analysis does not follow a lock that is tried in a loop.
  explicit SpinningLock(base::Mutex* mutex) ACQUIRE(mutex) NO_THREAD_SAFETY_ANALYSIS
      : mutex_(mutex) {
    constexpr int kTries = 256;
    for (int i = 0; i < kTries; ++i) {
      if (mutex_->TryLock()) return;
      ipc::CpuRelax();
    }
    mutex_->Lock();
  }
  ~SpinningLock() RELEASE() { mutex_->Unlock(); }
  SpinningLock(const SpinningLock&) = delete;

 private:
  base::Mutex* const mutex_;
};

}  // namespace

// --- reports -------------------------------------------------------------------------------------

void TurnReports::Send(const ipc::control::WorkerToDaemon& message) {
  Flush();
  tell_(message);
}

void TurnReports::Flush() {
  for (const ipc::control::Switched& switched : deferred_) tell_(switched);
  deferred_.clear();
}

void Board::FlushReports() {
  const SpinningLock lock(&mutex_);
  reports_.Flush();
}

template <class... Parameters, class... Arguments>
void Board::Decide(TurnActions (TurnTable::*decision)(Parameters...), Arguments... arguments) {
  const SpinningLock lock(&mutex_);
  Perform((turns_.*decision)(arguments...));
}

// --- effects -------------------------------------------------------------------------------------

void Board::Perform(const TurnActions& actions) {
  for (const TurnAction& action : actions) {
    if (const ShowGate* const show = std::get_if<ShowGate>(&action)) {
      Perform(*show);
    } else if (const OpenGate* const open = std::get_if<OpenGate>(&action)) {
      Perform(*open);
    } else if (const PrepareSession* const next = std::get_if<PrepareSession>(&action)) {
      records_.at(next->session).imminent.store(true);
      records_.at(next->session).wake();
    } else if (const WakeSession* const woken = std::get_if<WakeSession>(&action)) {
      records_.at(woken->session).wake();
    } else {
      Perform(std::get<TurnReport>(action));
    }
  }
}

void Board::Perform(const ShowGate& show) { records_.at(show.session).state.store(show.state); }

// A session that spins for its turn reports the switch itself, after its first work, because the
// device's thread hands over and has better things to do. The gate of such a session opens last:
// its thread needs the board at once and would go to sleep for it.
void Board::Perform(const OpenGate& open) {
  GateRecord& record = records_.at(open.session);
  const int64_t now_us = clock_();
  std::optional<ipc::control::Switched> switched = open.switched;
  if (switched.has_value()) switched->at_us = now_us;
  const bool defers = switched.has_value() && record.spins.load();
  if (defers) {
    reports_.Defer(*switched);
    record.defers_report.store(true, std::memory_order_relaxed);
  }
  record.opened_us.store(now_us, std::memory_order_relaxed);
  record.state.store(GateState::kOpen);
  // Either the session sees its gate open, or the board sees that the session spins no more.
  if (!record.spins.load()) record.wake();
  if (switched.has_value() && !defers) reports_.Send(*switched);
}

void Board::Perform(TurnReport report) {
  if (ipc::control::Switched* const switched = std::get_if<ipc::control::Switched>(&report)) {
    switched->at_us = clock_();
    reports_.Send(*switched);
  } else {
    reports_.Send(std::get<ipc::control::GateReport>(report));
  }
}

// --- a session's gate ----------------------------------------------------------------------------

GateRecord* Board::Add(uint64_t session_id, std::function<void()> wake) {
  const SpinningLock lock(&mutex_);
  assert(records_.count(session_id) == 0);
  turns_.Add(session_id);
  GateRecord& record = records_[session_id];
  record.wake = std::move(wake);
  return &record;
}

void Board::Remove(uint64_t session_id) {
  const SpinningLock lock(&mutex_);
  Perform(turns_.Remove(session_id));
  records_.erase(session_id);
}

void Board::ReportRunnable(uint64_t session_id) { Decide(&TurnTable::ReportRunnable, session_id); }

void Board::ReportIdle(uint64_t session_id, ipc::control::GateEvent idle) {
  Decide(&TurnTable::ReportIdle, session_id, idle);
}

void Board::FlushIdleReport(uint64_t session_id) {
  Decide(&TurnTable::FlushIdleReport, session_id);
}

void Board::Apply(uint64_t session_id, ipc::TurnEvent event) {
  Decide(&TurnTable::Apply, session_id, event);
}

bool Board::HasCompetitor(uint64_t session_id) const {
  const SpinningLock lock(&mutex_);
  return turns_.HasCompetitor(session_id);
}

GateView Board::View(uint64_t session_id) const {
  const SpinningLock lock(&mutex_);
  return turns_.View(session_id);
}

// --- lanewayd ------------------------------------------------------------------------------------

void Board::Grant(uint64_t session_id, uint64_t lane) {
  Decide(&TurnTable::Grant, session_id, lane);
}

void Board::Revoke(uint64_t session_id) { Decide(&TurnTable::Revoke, session_id); }

void Board::SetLane(uint64_t session_id, uint64_t lane) {
  Decide(&TurnTable::SetLane, session_id, lane);
}

void Board::SetPaused(uint64_t session_id, bool paused) {
  Decide(&TurnTable::SetPaused, session_id, paused);
}

void Board::SetSuccessors(uint64_t lane, std::vector<uint64_t> session_ids) {
  const SpinningLock lock(&mutex_);
  turns_.SetSuccessors(lane, std::move(session_ids));
}

void Board::SetPolicy(const ipc::control::LanePolicy& policy) {
  Decide(&TurnTable::SetPolicy, policy);
}

void Board::ForgetLane(uint64_t lane) {
  const SpinningLock lock(&mutex_);
  turns_.ForgetLane(lane);
}

void Board::SetDaemon(bool present) {
  const SpinningLock lock(&mutex_);
  daemon_.store(present);
  Perform(turns_.SetDaemon(present));
}

}  // namespace worker
