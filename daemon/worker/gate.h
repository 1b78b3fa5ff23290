// The gate of one session: its thread asks here for a turn in the lane, and reports.
//
//     closed --Grant, or it follows--> open --Revoke--> revoked --boundary, device done--> closed
//
// A switch asks no daemon: the session that leaves opens the gate of the next one, see TurnTable.
// Thread safety: the session's thread, unless a method says otherwise.
#pragma once

#include <cstdint>
#include <functional>

#include "daemon/worker/board.h"

namespace worker {

class Gate {
 public:
  // `wake` makes the session's thread look at its gate; called under the board's lock. The board
  // outlives this object.
  Gate(Board* board, uint64_t session_id, std::function<void()> wake)
      : board_(board), session_id_(session_id), record_(board->Add(session_id, std::move(wake))) {}
  ~Gate() { board_->Remove(session_id_); }  // leaves the lane to the next session
  Gate(const Gate&) = delete;

  // Any thread.
  GateState state() const { return record_->state.load(std::memory_order_relaxed); }
  bool closed() const { return record_->state.load() == GateState::kClosed; }
  // True when the gate is open for this lane. An open gate may be open for another lane: lanewayd
  // grants a lane right after it has told the session of it, and the session reads that message
  // later.
  bool OpensInto(uint64_t lane) const;

  // There is work: reported once, until ReportIdle(). May open the gate.
  void ReportRunnable();
  // There is none. `at_boundary`: nothing of the session lies in the lane. An uncontended session's
  // report waits for FlushIdleReport(), or until another session comes.
  void ReportIdle(bool at_boundary);
  void FlushIdleReport() { board_->FlushIdleReport(session_id_); }
  bool idle() const { return idle_ != Idle::kNot; }
  bool idle_untold() const { return board_->View(session_id_).idle_untold; }
  // It has the lane, and no other session waits, in whichever lane.
  bool uncontended() const { return board_->View(session_id_).uncontended; }

  // No further work passes; HandOver() follows once the device has finished what did. The next
  // session is woken now, so that its thread is awake when its turn comes.
  void Close();
  // Closed, but perhaps not for long: spins while that is worth it, or until `stop`.
  void AwaitTurn(const std::function<bool()>& stop);
  // The same for a caller that waits in its own way: whether spinning is worth it. From then until
  // EndAwait() the gate opens without a wake.
  bool BeginAwait();
  void EndAwait() { record_->spins.store(false); }
  // The session came to its turn by spinning: it reports the switch after its first work.
  bool defers_report() const { return record_->defers_report.load(std::memory_order_relaxed); }
  void FlushReports();
  // Without a daemon: the session's turn is over, and another one of its lane waits.
  bool TurnIsOver() const;

  // The device has finished: the lane is the next session's. Any thread: a driver's callback calls
  // it, so no driver function is called. Without Close() before it does nothing.
  void HandOver() { board_->Apply(session_id_, ipc::TurnEvent::kDeviceDone); }
  // The session's memory is on the host: the session leaves its lane, and its gate stays closed
  // until OnSwappedIn(), whichever list of successors names the session.
  void OnSwappedOut() { board_->Apply(session_id_, ipc::TurnEvent::kSwappedOut); }
  // The session's memory is about to come back, that of the lane included: from now on the lane is
  // kept for the session, with a daemon or without. False: another session holds the lane.
  bool TakeLane();
  // Opens at once when the session has its lane.
  void OnSwappedIn() { board_->Apply(session_id_, ipc::TurnEvent::kSwappedIn); }

 private:
  enum class Idle { kNot, kInIteration, kAtBoundary };

  int64_t OpenUs() const;

  Board* const board_;
  const uint64_t session_id_;
  GateRecord* const record_;
  Idle idle_ = Idle::kAtBoundary;
};

}  // namespace worker
