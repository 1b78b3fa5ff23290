// Whether the program may use its device now: asked before every operation, decided by lanewayd.
//
// The program's turn is ipc/turn.h's machine, as a session's in a worker is. A revoked program goes
// on to its next boundary; one without iterations stops between two operations. There the calling
// thread waits until the device has finished, reports the lane free, and sleeps until the grant. A
// program without operations for a while is reported idle. An idle program gives its lane up as
// soon as the lane is revoked, and asks again with its next operation. Without a daemon the gate is
// open.
//
// The gate has no socket and no driver, only a clock and the functions that it is given. Thread
// safety: all methods from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/mutex.h"
#include "ipc/calls/laneway_calls.h"
#include "ipc/control.h"
#include "ipc/iteration_clock.h"
#include "ipc/session_file.h"
#include "ipc/turn.h"
#include "shim/iterations/iterations.h"

namespace shim::inprocess {

class Gate {
 public:
  // tell: a message for lanewayd, under the gate's lock. drain: returns when the device has
  // finished all that was submitted. wake: the program is active again; ReportIdleIfSilent() is to
  // be called now and then.
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
  // Another daemon, or none (session 0). An earlier grant holds no more.
  void SetDaemon(uint64_t session_id, ipc::SessionPage* page);
  void Grant(uint64_t lane);
  void Revoke();

  // --- now and then
  // Reports the program idle when it has submitted nothing since the last call and its device has
  // finished.
  void ReportIdleIfSilent();
  bool idle() const { return idle_.load(std::memory_order_relaxed); }

  // The process ends: no thread waits for a turn any more.
  void Open();

  ipc::SessionPage* page() const { return page_.load(std::memory_order_acquire); }

 private:
  // Operations that have passed, and how many had when the program was looked at last.
  class Passed {
   public:
    void Add() { ++count_; }
    bool grew() const { return seen_ != count_; }
    // Whether it grew since the last look.
    bool Look() { return std::exchange(seen_, count_) != count_; }

   private:
    uint64_t count_ = 0;
    uint64_t seen_ = 0;
  };

  void CountBoundary(const ipc::BoundaryInfo& info) REQUIRES(passing_);
  ipc::Progress* progress() const;  // null: no page
  bool Iterates() REQUIRES(passing_);
  bool IsSilent() const;
  void WaitForGrant(bool boundary) REQUIRES(passing_) EXCLUDES(state_);
  void LeaveLane() REQUIRES(passing_, state_);  // lets go of state_ while the device finishes
  void Move(ipc::TurnEvent event) REQUIRES(state_);
  void Refresh() REQUIRES(state_);  // open_, from the rest

  const Hooks hooks_;
  iterations::Iterations* const iterations_;
  std::atomic<ipc::SessionPage*> page_{nullptr};  // null: never connected
  std::atomic<bool> open_{true};
  std::atomic<uint32_t> working_{0};  // operations that have passed and are being submitted
  std::atomic<uint32_t> waiting_{0};
  std::atomic<bool> idle_{true};  // written under state_

  // One thread passes at a time, and waits with it.
  base::Mutex passing_ ACQUIRED_BEFORE(state_);
  Passed passed_ GUARDED_BY(passing_);
  ipc::IterationClock clock_ GUARDED_BY(passing_);

  base::Mutex state_;
  base::CondVar granted_changed_;
  uint64_t session_id_ GUARDED_BY(state_) = 0;  // 0: no daemon
  uint64_t lane_ GUARDED_BY(state_) = 0;
  ipc::Turn turn_ GUARDED_BY(state_) = ipc::Turn::kOutside;
};

}  // namespace shim::inprocess
