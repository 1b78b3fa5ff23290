// The gate: which session of a lane may use the device now, and how one follows another.
//
// At most one session of a lane is open. lanewayd decides who runs and who may follow; a switch
// asks nobody: the session that leaves names the first of the published successors that has work,
// opens its gate, and lanewayd is told afterwards. Without a daemon the sessions of a lane take
// turns by themselves, so that nobody waits forever. (Salus 2.4: a job switches where its ephemeral
// memory is gone, between two iterations.)
//
//     closed --Grant, or it follows--> open --Revoke--> revoked --boundary, device done--> closed
//
// A Gate belongs to one session; the Board knows those of this worker. Running costs a session one
// relaxed load per message: state(). Thread safety: every method from any thread, unless it says
// otherwise. Lock order: the board's mutex, then whatever the listener takes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "ipc/control.h"
#include "ipc/futex.h"

namespace worker {

enum class GateState : uint32_t {
  kOpen = 0,
  kRevoked = 1,  // open until its next boundary
  kClosed = 2,
};

inline int64_t NowUs() { return ipc::MonotonicNs() / 1000; }

class Board;

class Gate {
 public:
  // `wake` makes the session's thread look at its gate; called under the board's lock. Both outlive
  // this object.
  Gate(Board* board, uint64_t session_id, std::function<void()> wake);
  ~Gate();  // leaves its lane to the next
  Gate(const Gate&) = delete;

  GateState state() const { return state_.load(std::memory_order_relaxed); }
  bool closed() const { return state_.load() == GateState::kClosed; }
  // Whether it is this lane that it is open for. Who is told of another lane hears it before that
  // one is granted, and may not have done so yet.
  bool OpensInto(uint64_t lane) const;

  // --- the session's thread
  // There is work: said once, until Rest(). May open the gate.
  void Want();
  // There is none. `at_boundary`: nothing of it lies in the lane. Who is alone keeps it to itself
  // until TellRest(), or until somebody comes: a program that computes for a moment in each
  // iteration would otherwise have lanewayd hear of it twice.
  void Rest(bool at_boundary);
  void TellRest();
  bool resting() const { return resting_ != Resting::kNot; }
  bool rests_untold() const;
  bool alone() const;  // nobody waits, wherever
  // No further work passes; HandOver() follows once the device has finished what did. Whoever is
  // next is woken now, so that its thread is awake when its turn comes.
  void Close();
  // Closed, but perhaps not for long: spins while that is worth it, or until `stop`.
  void AwaitTurn(const std::function<bool()>& stop);
  // The same for a caller that waits in its own way: whether spinning is worth it. From then until
  // EndAwait() the gate opens without a wake.
  bool BeginAwait();
  void EndAwait() { spins_.store(false); }
  // A session that came to its turn by spinning tells lanewayd itself, after its first work:
  // whoever hands over is the device's thread.
  bool unsettled() const { return unsettled_.load(std::memory_order_relaxed); }
  void Settle();
  // For how long it has been open, until now; 0 when it is closed.
  int64_t OpenUs() const;
  // Without a daemon: its turn is over and another of its lane waits.
  bool TurnIsOver() const;

  // The device has finished: the lane is the next session's. From a driver's callback, too: calls
  // no driver function.
  void HandOver();
  // Its memory is on the host: by order of lanewayd, which knows who is next, it leaves its lane,
  // and whatever list of successors it still stands in, the gate stays closed until Return().
  void Abandon();
  // Its memory is about to come back, and with it what lives in its lane: the lane is its from now
  // on, so that nobody else is let in whoever decides meanwhile. False: another holds it.
  bool TakeLane();
  // Open at once, if it has its lane.
  void Return();

 private:
  friend class Board;
  void Set(GateState state);
  enum class Resting { kNot, kInIteration, kAtBoundary };

  void TellRestLocked();

  Board* const board_;
  const uint64_t session_id_;
  const std::function<void()> wake_;
  std::atomic<GateState> state_{GateState::kClosed};
  std::atomic<int64_t> opened_us_{0};
  std::atomic<bool> imminent_{false};
  std::atomic<bool> spins_{false};
  std::atomic<bool> unsettled_{false};
  Resting resting_ = Resting::kAtBoundary;  // the session's thread's
  // Guarded by the board's mutex.
  uint64_t lane_ = 0;
  bool wants_ = false;
  std::optional<ipc::control::GateEvent> untold_rest_;
  bool away_ = false;    // its memory is on the host
  bool holds_ = false;   // the lane is its: open, revoked, or closed with work on the device
  uint64_t wanted_ = 0;  // its place among those who want
};

struct GateView {
  uint64_t lane = 0;
  bool granted = false;
  bool wants = false;
};

class Board {
 public:
  using Tell = std::function<void(const ipc::control::WorkerToDaemon&)>;

  // `tell` takes what lanewayd must know: Switched, GateReport. Called under the lock. `clock` is
  // any monotonic one, in microseconds.
  explicit Board(Tell tell, int64_t (*clock)() = NowUs) : tell_(std::move(tell)), clock_(clock) {}
  Board(const Board&) = delete;

  // Also of a session whose gate is yet to come: it stays off the device, whoever decides, and in
  // turns without a daemon.
  void SetPaused(uint64_t session_id, bool paused);

  // --- what lanewayd decides; unknown sessions are ignored, they may have ended
  void Grant(uint64_t session_id, uint64_t lane);
  void Revoke(uint64_t session_id);
  void SetSuccessors(uint64_t lane, std::vector<uint64_t> session_ids);
  // Another worker's sessions use the lane, too: without a daemon it is not opened here.
  void SetShared(uint64_t lane, bool shared);
  // Whether its session is the only one of all.
  void SetAlone(uint64_t lane, bool alone);
  // Another lane than the one it held until now is granted anew.
  void SetLane(uint64_t session_id, uint64_t lane);
  // Whether anyone decides. Without, lanes are used in turns.
  void SetDaemon(bool present);

  GateView View(uint64_t session_id) const;
  // Tells what is still untold (Gate::unsettled). Before a session's own word, its end above all:
  // lanewayd would give away a lane that has long been another's.
  void Settle();

 private:
  friend class Gate;
  struct Lane {
    Gate* holder = nullptr;
    bool shared = false;
    bool alone = false;
    std::vector<uint64_t> successors;
  };
  // A switch is shorter than the wake of a thread that sleeps for the mutex.
  class Lock {
   public:
    explicit Lock(std::mutex* mutex) : lock_(*mutex, std::defer_lock) {
      constexpr int kTries = 256;
      for (int i = 0; i < kTries; ++i) {
        if (lock_.try_lock()) return;
        ipc::CpuRelax();
      }
      lock_.lock();
    }

   private:
    std::unique_lock<std::mutex> lock_;
  };

  bool CanFollow(const Gate& gate) const;
  void Open(Gate* gate, Lane* lane);
  Gate* Next(uint64_t lane_id, const Lane& lane) const;
  Gate* FindLocked(uint64_t session_id) const;
  void HandOverLocked(Gate* gate);
  void FreeLane(Gate* gate);
  bool WaitsInLane(const Gate& but) const;
  bool IsAloneLocked(const Gate& gate) const;
  void TellLocked(const ipc::control::WorkerToDaemon& message);
  void SettleLocked();

  const Tell tell_;
  int64_t (*const clock_)();
  mutable std::mutex mutex_;
  std::map<uint64_t, Gate*> gates_;
  std::map<uint64_t, Lane> lanes_;
  std::set<uint64_t> paused_;
  uint64_t wants_ = 0;
  std::vector<ipc::control::Switched> untold_;  // goes before anything else
  std::atomic<bool> daemon_{true};
};

}  // namespace worker
