#include "daemon/worker/gate.h"

#include <sched.h>

namespace worker {
namespace {

using ipc::control::GateEvent;

// Turns of sessions that no daemon orders: a few iterations of most programs.
constexpr int64_t kTurnUs = 200'000;
// For how long a session spins while the device finishes what another one has queued.
constexpr int64_t kImminentUs = 20'000;

}  // namespace

bool Gate::OpensInto(uint64_t lane) const {
  const GateView view = board_->View(session_id_);
  return view.open && view.lane == lane;
}

void Gate::ReportRunnable() {
  if (!idle()) return;
  idle_ = Idle::kNot;
  board_->ReportRunnable(session_id_);
}

void Gate::ReportIdle(bool at_boundary) {
  const Idle now = at_boundary ? Idle::kAtBoundary : Idle::kInIteration;
  if (idle_ >= now) return;
  idle_ = now;
  board_->ReportIdle(session_id_, at_boundary ? GateEvent::kIdle : GateEvent::kStalled);
}

void Gate::Close() { board_->Apply(session_id_, ipc::TurnEvent::kClose); }

// Waking up takes longer than a whole switch. Other threads that want the processor get it.
void Gate::AwaitTurn(const std::function<bool()>& stop) {
  if (!BeginAwait()) return;
  const int64_t end_us = board_->Now() + kImminentUs;
  while (closed() && !stop() && board_->Now() < end_us) sched_yield();
  EndAwait();
}

bool Gate::BeginAwait() {
  if (!record_->imminent.exchange(false)) return false;
  record_->spins.store(true);
  return true;
}

void Gate::FlushReports() {
  record_->defers_report.store(false, std::memory_order_relaxed);
  board_->FlushReports();
}

bool Gate::TakeLane() {
  board_->Apply(session_id_, ipc::TurnEvent::kTakeLane);
  return board_->View(session_id_).granted;
}

// For how long the session has had the lane; 0 when it has not.
int64_t Gate::OpenUs() const {
  return state() == GateState::kClosed
             ? 0
             : board_->Now() - record_->opened_us.load(std::memory_order_relaxed);
}

bool Gate::TurnIsOver() const {
  if (board_->has_daemon()) return false;
  const int64_t held_us = OpenUs();
  if (held_us != 0 && held_us < kTurnUs && !idle()) return false;
  return board_->HasCompetitor(session_id_);
}

}  // namespace worker
