// The gates of one worker's sessions: carries out what the TurnTable decides, under one lock.
//
// The Board shows each session's thread its gate's state, wakes it, and tells lanewayd. Running
// costs a session one relaxed load per message: GateRecord::state. Thread safety: every method from
// any thread. Lock order: the board's mutex, then whatever `wake` and `tell` take.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "base/mutex.h"
#include "daemon/worker/turn_table.h"
#include "ipc/control.h"
#include "ipc/futex.h"

namespace worker {

inline int64_t NowUs() { return ipc::MonotonicNs() / 1000; }

// The board and one session's thread share this record without the lock.
struct GateRecord {
  std::function<void()> wake;  // makes the session's thread look at its gate
  std::atomic<GateState> state{GateState::kClosed};
  std::atomic<int64_t> opened_us{0};  // when the gate was opened last
  // The session is next: spinning for its turn is worth while.
  std::atomic<bool> imminent{false};
  // The session's thread spins: its gate opens without a wake.
  std::atomic<bool> spins{false};
  // The switch to this session is yet to be reported, by its own thread.
  std::atomic<bool> defers_report{false};
};

// Sends a worker's reports about turns to lanewayd, in order. A deferred report goes before any
// other.
class TurnReports {
 public:
  using Tell = std::function<void(const ipc::control::WorkerToDaemon&)>;

  explicit TurnReports(Tell tell) : tell_(std::move(tell)) {}
  void Defer(const ipc::control::Switched& switched) { deferred_.push_back(switched); }
  void Send(const ipc::control::WorkerToDaemon& message);
  void Flush();

 private:
  const Tell tell_;
  std::vector<ipc::control::Switched> deferred_;
};

class Board {
 public:
  // `tell` takes Switched and GateReport, under the lock. `clock` is any monotonic one, in
  // microseconds.
  explicit Board(TurnReports::Tell tell, int64_t (*clock)() = NowUs)
      : clock_(clock), reports_(std::move(tell)) {}
  Board(const Board&) = delete;

  // --- a session's gate (gate.h). `wake` is called under the lock.
  // The record lives until Remove().
  GateRecord* Add(uint64_t session_id, std::function<void()> wake);
  void Remove(uint64_t session_id);
  void ReportRunnable(uint64_t session_id);
  void ReportIdle(uint64_t session_id, ipc::control::GateEvent idle);
  void FlushIdleReport(uint64_t session_id);
  void Apply(uint64_t session_id, ipc::TurnEvent event);
  bool HasCompetitor(uint64_t session_id) const;
  int64_t Now() const { return clock_(); }

  // --- what lanewayd decides; see TurnTable
  void Grant(uint64_t session_id, uint64_t lane);
  void Revoke(uint64_t session_id);
  void SetLane(uint64_t session_id, uint64_t lane);
  void SetPaused(uint64_t session_id, bool paused);
  void SetSuccessors(uint64_t lane, std::vector<uint64_t> session_ids);
  void SetPolicy(const ipc::control::LanePolicy& policy);
  void ForgetLane(uint64_t lane);
  void SetDaemon(bool present);
  bool has_daemon() const { return daemon_.load(std::memory_order_relaxed); }

  GateView View(uint64_t session_id) const;
  // Tells what was deferred. Called before a session's own last message: lanewayd would give away a
  // lane that has long been another session's.
  void FlushReports();

 private:
  // Has the turns decided, and does what follows, under one lock.
  template <class... Parameters, class... Arguments>
  void Decide(TurnActions (TurnTable::*decision)(Parameters...), Arguments... arguments);
  void Perform(const TurnActions& actions) REQUIRES(mutex_);
  void Perform(const ShowGate& show) REQUIRES(mutex_);
  void Perform(const OpenGate& open) REQUIRES(mutex_);
  void Perform(TurnReport report) REQUIRES(mutex_);

  int64_t (*const clock_)();
  mutable base::Mutex mutex_;
  TurnTable turns_ GUARDED_BY(mutex_);
  std::map<uint64_t, GateRecord> records_ GUARDED_BY(mutex_);
  TurnReports reports_ GUARDED_BY(mutex_);
  std::atomic<bool> daemon_{true};  // written under the lock
};

}  // namespace worker
