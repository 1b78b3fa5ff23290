// Whether the program may use its device now: asked before every operation, told by lanewayd.
//
//     closed --Grant--> open --Revoke--> revoked --boundary, device done--> closed
//
// As with a worker's gate (daemon/worker/gate.h): a revoked program goes on to its next boundary;
// one without iterations stops between two operations. There the calling thread waits until the
// device has finished, reports the lane free, and sleeps until the grant. A program that does
// nothing for a while rests: it holds up nobody, and asks again with its next operation. Without a
// daemon the gate is open.
//
// Pure but for the clock and what it is given: no socket, no driver. Thread safety: all methods
// from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/mutex.h"
#include "ipc/calls/laneway_calls.h"
#include "ipc/control.h"
#include "ipc/iteration_clock.h"
#include "ipc/session_file.h"
#include "shim/iterations/iterations.h"

namespace shim::inprocess {

class Gate {
 public:
  // tell: a message for lanewayd, under the gate's lock. drain: returns when the device has
  // finished all that was submitted. wake: the program is active again, so that somebody calls
  // RestIfSilent() now and then.
  struct Hooks {
    std::function<void(const ipc::control::ProgramToDaemon&)> tell;
    std::function<void()> drain;
    std::function<void()> wake;
  };
  Gate(Hooks hooks, iterations::Iterations* iterations);
  Gate(const Gate&) = delete;

  // --- the program
  // Before an operation; may wait. Leave() after it.
  void Pass(const iterations::Op& op);
  void Leave() { working_.fetch_sub(1, std::memory_order_release); }
  // Around a call in which the program waits for its device.
  void BeginWait() { waiting_.fetch_add(1, std::memory_order_relaxed); }
  void EndWait();

  // --- lanewayd
  // Another daemon, or none (session 0). What was granted before holds no more.
  void SetDaemon(uint64_t session_id, ipc::SessionPage* page);
  void Grant(uint64_t lane);
  void Revoke();

  // --- now and then
  // Reports that there is no work when there was none since the last call and the device is idle.
  void RestIfSilent();
  bool resting() const { return resting_.load(std::memory_order_relaxed); }

  // The process ends: nobody waits any more.
  void Open();

  ipc::SessionPage* page() const { return page_.load(std::memory_order_acquire); }

 private:
  void CountBoundary(const ipc::BoundaryInfo& info) REQUIRES(turn_);
  ipc::Progress* progress() const;  // null: no page
  bool Iterates() REQUIRES(turn_);
  void WaitForGrant(bool boundary) REQUIRES(turn_) EXCLUDES(state_);
  void LeaveLane() REQUIRES(turn_, state_);  // lets go of state_ while the device finishes
  void HandOver() REQUIRES(state_);
  void Refresh() REQUIRES(state_);  // open_, from the rest

  const Hooks hooks_;
  iterations::Iterations* const iterations_;
  std::atomic<ipc::SessionPage*> page_{nullptr};  // null: never connected
  std::atomic<bool> open_{true};
  std::atomic<uint32_t> working_{0};  // operations that have passed and are being submitted
  std::atomic<uint32_t> waiting_{0};
  std::atomic<bool> resting_{true};  // written under state_

  // One thread passes at a time, and waits with it.
  base::Mutex turn_ ACQUIRED_BEFORE(state_);
  uint64_t passed_ GUARDED_BY(turn_) = 0;
  uint64_t passed_seen_ GUARDED_BY(turn_) = 0;
  ipc::IterationClock clock_ GUARDED_BY(turn_);

  base::Mutex state_;
  base::CondVar granted_changed_;
  uint64_t session_id_ GUARDED_BY(state_) = 0;  // 0: no daemon
  uint64_t lane_ GUARDED_BY(state_) = 0;
  bool granted_ GUARDED_BY(state_) = false;
  bool revoked_ GUARDED_BY(state_) = false;
};

}  // namespace shim::inprocess
