// The process's session: connecting, waiting for the device, noticing loss, fork, and another
// worker that takes the session over.
//
// Calls of all threads go through one pipeline (shim/pipeline.h), which keeps the order that the
// program's threads agreed on; shim/replies.h takes the replies. Completions need no message: they
// are words in the session file that the device writes. No wait is unbounded: each nap ends with a
// look at the page's loss word and at the worker process.
//
// Made once per process and never destroyed: programs call CUDA from static destructors.
// Thread safety: all methods from any thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/mutex.h"
#include "ipc/ring.h"
#include "shim/connection.h"
#include "shim/lock_order.h"
#include "shim/measured_wait.h"
#include "shim/pipeline.h"
#include "shim/rebuild/log.h"
#include "shim/replies.h"
#include "shim/upkeep.h"

namespace shim {

class Client : public Upkeep {
 public:
  static Client& Process();

  // cuInit: connects when this process has no session yet. A failure is said once on stderr; a
  // later call tries again, as the daemon may run by then.
  CUresult Initialize();
  // Takes a connection made elsewhere (tests, benchmarks). REQUIRES: not connected.
  void Use(std::unique_ptr<Connection> connection);

  // What every call asks first: 3 before cuInit and in a forked child, the session's code once it
  // is lost.
  CUresult Ready() {
    if (state_.load(std::memory_order_acquire) != State::kLive) return NotLive();
    if (pipeline_.Displaced()) return Rebuild();
    return page_->loss.load(std::memory_order_relaxed) == 0 ? CUDA_SUCCESS : Lost();
  }

  // The first failure of a queued call, once: returned where CUDA surfaces asynchronous errors.
  // Shows what kernels have printed, too.
  CUresult AfterWait();

  // Made by the hello, or by Use(). REQUIRES: there is a session.
  const Connection& connection() const { return *connection_; }
  const ipc::SessionFile& file() const { return *connection_->file; }
  uint64_t arena_base() const { return arena_base_; }

  bool Completed(uint32_t slot, uint64_t sequence) const {
    return words_->completed[slot].load(std::memory_order_acquire) >= sequence;
  }
  // Spins for as long as the thread's last waits advise (shim/wait_spin.h), at least for spin_us.
  // Then calls request_wake (which sends something that rings our doorbell) and sleeps, until the
  // device has written `sequence`, or the session is lost.
  template <class RequestWake>
  CUresult WaitCompleted(uint32_t slot, uint64_t sequence, RequestWake request_wake,
                         unsigned spin_us = ipc::limits::kSpinUs) {
    if (Completed(slot, sequence)) return CUDA_SUCCESS;
    pipeline_.Flush();
    MeasuredWait wait(slot, spin_us);
    const auto completed = [&] { return Completed(slot, sequence); };
    const auto worker_needs_cpu = [&] { return ipc::ConsumerNeedsThisCpu(page_->to_worker); };
    if (wait.Spin(completed, worker_needs_cpu)) return CUDA_SUCCESS;
    wait.OnSleep();
    if (const CUresult result = request_wake(); result != CUDA_SUCCESS) return result;
    return SleepUntilCompleted(slot, sequence);
  }
  void Acknowledge(uint32_t slot, uint64_t ticket) {
    words_->acknowledged[slot].store(ticket, std::memory_order_seq_cst);
  }

  // For threads that wait for several words: a ticket, a look, a bounded sleep on the session's
  // doorbell.
  uint32_t DoorbellTicket() const;
  void SleepOnDoorbell(uint32_t ticket);

  // --- Upkeep
  CUresult RebuildLocked() override;
  void TryRebuild() override;
  bool NeedsRebuild() const override {
    return pipeline_.Displaced() && !rebuilding_.load(std::memory_order_acquire);
  }
  void CheckWorker() override;
  CUresult Lost() override;

  // How calls are sent.
  Pipeline& pipeline() { return pipeline_; }
  // Their replies.
  Replies& replies() { return replies_; }
  // What a new worker is told of; null when the session's transport does not let it move.
  RebuildLog* log() { return ring_ == nullptr ? nullptr : &log_; }

 private:
  enum class State : uint32_t { kNone, kLive, kForked };

  Client();
  CUresult NotLive() const;

  // Tells the new worker what is alive, then sends again what the lost one had not taken
  // (rebuild/rebuild.cc).
  CUresult Rebuild();
  static void AfterForkInChild();
  void ShowPrints();

  CUresult SleepUntilCompleted(uint32_t slot, uint64_t sequence);

  std::atomic<State> state_{State::kNone};
  base::Mutex connect_mutex_ ACQUIRED_BEFORE(lock_order::kSending);  // one thread connects
  std::unique_ptr<Connection> connection_;
  ipc::SessionPage* page_ = nullptr;
  ipc::CompletionWords* words_ = nullptr;
  uint64_t arena_base_ = 0;
  std::atomic<int> missed_naps_{0};
  base::Mutex worker_mutex_ ACQUIRED_AFTER(lock_order::kKeeping);
  Liveness worker_ GUARDED_BY(worker_mutex_);  // of the process that serves the session now

  ipc::RingSender* ring_ = nullptr;  // null: another transport
  RebuildLog log_;
  std::atomic<bool> rebuilding_{false};  // some thread holds the send lock and rebuilds
  base::Mutex prints_mutex_ ACQUIRED_AFTER(lock_order::kKeeping);  // one thread drains the prints
  Pipeline pipeline_;
  Replies replies_;
};

}  // namespace shim
