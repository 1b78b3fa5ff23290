// This process as a session that keeps its own context: gate, account and the connection to
// lanewayd, together. Made by the first cuInit; before that, in a forked child and while the
// process exits, calls go straight to the driver. Thread safety: all methods from any thread.
#pragma once

#include "base/mutex.h"
#include "ipc/calls/vendor.h"

#include <atomic>
#include <set>

#include "shim/inprocess/account.h"
#include "shim/inprocess/gate.h"
#include "shim/inprocess/link.h"

namespace shim::inprocess {

class Process {
 public:
  // Null while nothing is gated or counted.
  static Process* Get() { return active_.load(std::memory_order_acquire); }
  // Becomes a session of lanewayd; waits until it is admitted. The code is the first call's.
  static CUresult Begin();

  Gate& gate() { return gate_; }
  Account& account() { return account_; }

  // Has surplus memory given back soon, also while the program is idle.
  void WakeIfSurplus() {
    if (account_.has_surplus() && gate_.idle()) Wake();
  }

  // The calling thread's context has work from here on.
  void NoteContext();
  // Handles of contexts that were destroyed mean nothing.
  void ForgetContexts();

  // Between a capture's begin and end operations are recorded, not done, and nothing may wait.
  void BeginCapture() { captures_.fetch_add(1, std::memory_order_relaxed); }
  void EndCapture();
  bool capturing() const { return captures_.load(std::memory_order_relaxed) != 0; }

 private:
  Process();
  void Drain();
  void Watch();
  void Wake();
  void OnDaemonMessage(const ipc::control::DaemonToProgram& message);
  static void End();

  static std::atomic<Process*> active_;

  Link link_;
  Account account_;
  Gate gate_;
  std::atomic<int> captures_{0};
  std::atomic<uint32_t> awake_{1};
  base::Mutex contexts_mutex_;
  std::set<CUcontext> contexts_ GUARDED_BY(contexts_mutex_);
  std::atomic<uint64_t> forgotten_{1};  // times that contexts_ was emptied, and one
};

// One operation on the device: waits for its turn, and is being submitted while this lives.
class Passage {
 public:
  explicit Passage(const iterations::Op& op) : process_(Process::Get()) {
    if (process_ != nullptr && process_->capturing()) process_ = nullptr;
    if (process_ == nullptr) return;
    process_->NoteContext();
    process_->gate().Pass(op);
  }
  ~Passage() {
    if (process_ != nullptr) process_->gate().Leave();
  }
  Passage(const Passage&) = delete;

 private:
  Process* process_;
};

// A call in which the program waits for its device.
class HostWait {
 public:
  HostWait() : process_(Process::Get()) {
    if (process_ != nullptr) process_->gate().BeginWait();
  }
  ~HostWait() {
    if (process_ != nullptr) process_->gate().EndWait();
  }
  HostWait(const HostWait&) = delete;

 private:
  Process* const process_;
};

}  // namespace shim::inprocess
