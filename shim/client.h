// The process's session: sending calls, waiting for replies and for the device, noticing loss and
// fork.
//
// Calls of all threads go through one ring in the order of the client's lock, which keeps the order
// that the program's threads agreed on. Replies come back in any order; of the threads that wait,
// one reads for all (the leader). Completions need no message: they are words in the session file
// that the device writes. No wait is unbounded: each nap ends with a look at the page's loss word
// and at the worker process.
//
// Made once per process and never destroyed: programs call CUDA from static destructors.
// Thread safety: all methods from any thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "ipc/calls.h"
#include "ipc/codec_client.h"
#include "ipc/message.h"
#include "ipc/ring.h"
#include "shim/arena/fences.h"
#include "shim/connection.h"
#include "shim/rebuild/log.h"
#include "shim/thread_state.h"

namespace shim {

class Client {
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
    if (Displaced()) return Rebuild();
    return page_->loss.load(std::memory_order_relaxed) == 0 ? CUDA_SUCCESS : Lost();
  }

  // The first failure of a queued call, once: returned where CUDA surfaces asynchronous errors.
  // Shows what kernels have printed, too.
  CUresult AfterWait();

  const ipc::Welcome& welcome() const { return connection_->welcome; }
  const ipc::SessionFile& file() const { return *connection_->file; }
  bool has_pinned_window() const { return connection_->has_pinned_window; }
  uint64_t arena_base() const { return arena_base_; }

  // Grows with every call sent: what was submitted before it has a smaller number.
  uint64_t submitted() const { return submitted_.load(std::memory_order_relaxed); }
  // The last of them that was more than a question how far the device is.
  uint64_t last_work() const { return last_work_.load(std::memory_order_relaxed); }
  // How many calls were work for the device, in the sense of shim/iterations.
  uint64_t operations() const { return operations_.load(std::memory_order_relaxed); }

  bool Completed(uint32_t slot, uint64_t sequence) const {
    return words_->completed[slot].load(std::memory_order_acquire) >= sequence;
  }
  // Spins, then calls request_wake (which sends something that rings our doorbell), then sleeps,
  // until the device has written `sequence`, or the session is lost.
  template <class RequestWake>
  CUresult WaitCompleted(uint32_t slot, uint64_t sequence, RequestWake request_wake,
                         unsigned spin_us = ipc::limits::kSpinUs) {
    if (SpinCompleted(slot, sequence, spin_us)) return CUDA_SUCCESS;
    if (const CUresult result = request_wake(); result != CUDA_SUCCESS) return result;
    return SleepUntilCompleted(slot, sequence);
  }
  // What orders memory that is used again. Touch: the call being encoded goes to this stream.
  // AfterWait: everything sent before `look` was taken is complete (slot: on this stream alone).
  arena::Fences& fences() { return fences_; }
  void Touch(int32_t slot) { touched_ = slot; }
  void TouchLegacy() { touched_ = kLegacyTouched; }  // of the call's device
  void AfterWait(uint64_t look, int32_t slot);

  void Acknowledge(uint32_t slot, uint64_t ticket) {
    words_->acknowledged[slot].store(ticket, std::memory_order_seq_cst);
  }

  // For threads that wait for several words: a ticket, a look, a bounded sleep on the session's
  // doorbell.
  uint32_t DoorbellTicket() const;
  void SleepOnDoorbell(uint32_t ticket);
  // After a nap that ended without news: marks the session lost when its worker is gone.
  void CheckWorker();

  // Grows when another worker takes the session over.
  uint32_t generation() const { return generation_.load(std::memory_order_acquire); }
  // What a new worker is told of; null when the session's transport does not let it move.
  RebuildLog* log() { return ring_ == nullptr ? nullptr : &log_; }

 private:
  friend class Message;
  friend class Replay;
  enum class State : uint32_t { kNone, kLive, kForked };

  struct PendingReply {
    uint32_t request = 0;
    std::atomic<uint32_t> done{0};
    std::vector<std::byte> bytes;  // header included
  };

  Client();
  CUresult NotLive() const;
  CUresult Lost();

  // Another worker has taken the session over and knows nothing of it yet.
  bool Displaced() const {
    return page_->generation.load(std::memory_order_relaxed) !=
           generation_.load(std::memory_order_relaxed);
  }
  // Tells the new worker what is alive, then sends again what the lost one had not taken
  // (rebuild/rebuild.cc). The second: REQUIRES the send lock.
  CUresult Rebuild();
  CUresult RebuildLocked();
  static void AfterForkInChild();
  void ShowPrints();

  bool SpinCompleted(uint32_t slot, uint64_t sequence, unsigned spin_us) const;
  CUresult SleepUntilCompleted(uint32_t slot, uint64_t sequence);

  void Register(PendingReply* pending);
  void Forget(PendingReply* pending);
  // `replay_of`: the generation that a rebuild waits for; another one ends the wait (600).
  CUresult WaitReply(PendingReply* pending, uint32_t replay_of = 0);
  void ReadForAll(PendingReply* mine, uint32_t replay_of);
  void FollowReader(PendingReply* mine);
  bool Deliver(std::span<const std::byte> message, const PendingReply* mine);
  void WakeFollowers();

  std::atomic<State> state_{State::kNone};
  std::mutex connect_mutex_;
  std::unique_ptr<Connection> connection_;
  ipc::SessionPage* page_ = nullptr;
  ipc::CompletionWords* words_ = nullptr;
  uint64_t arena_base_ = 0;
  std::atomic<int> missed_naps_{0};
  std::mutex worker_mutex_;  // of connection_->worker, which changes with the worker

  ipc::RingSender* ring_ = nullptr;  // null: another transport
  RebuildLog log_;
  std::atomic<uint32_t> generation_{0};  // written under send_mutex_
  std::atomic<bool> rebuilding_{false};  // some thread holds send_mutex_ and rebuilds
  std::mutex prints_mutex_;              // one drainer of the print area

  std::mutex send_mutex_;  // orders writers of the ring
  uint32_t last_request_ = 0;
  std::atomic<uint64_t> submitted_{0};
  std::atomic<uint64_t> last_work_{0};
  std::atomic<uint64_t> operations_{0};
  arena::Fences fences_;
  static constexpr int32_t kLegacyTouched = -2;
  int32_t touched_ = arena::kAnyStream;  // by the message under way
  uint64_t stop_at_ = 0;                 // LANEWAY_TEST_STOP_AT

  std::mutex pending_mutex_;
  std::vector<PendingReply*> pending_;
  std::atomic<bool> reading_{false};
  std::atomic<uint32_t> followers_word_{0};
  std::atomic<uint32_t> followers_sleeping_{0};
};

// One call on its way out. Holds the client's lock from construction until Send, so that what is
// decided between (a stream's next sequence number) has the order of the ring.
class Message {
 public:
  // Room for a body of up to body_bytes; result() tells whether there is any (the session may be
  // lost). `values`, where they are given, tell the detector of iterations what the call is; a
  // boundary that it finds goes first. REQUIRES: Ready() was asked; body_bytes <=
  // ipc::kBodyBytesMax.
  Message(Client& client, ipc::Op op, size_t body_bytes, uint32_t context,
          ipc::Values values = nullptr);
  Message(const Message&) = delete;

  CUresult result() const { return result_; }
  std::span<std::byte> body() const { return body_; }

  // The call, as it was encoded, is noted in the log when it is sent.
  void Record(ipc::Values values, const ipc::Encoded& encoded) {
    values_ = values;
    encoded_ = &encoded;
  }

  // REQUIRES: result() == CUDA_SUCCESS. Queues the call with the first body_bytes of its body.
  CUresult Send(size_t body_bytes);
  // Queues the call, waits for the reply and gives its body.
  CUresult Exchange(size_t body_bytes, std::vector<std::byte>* reply);
  // Of the note in the log, after Send or Exchange.
  RebuildLog::Token token() const { return token_; }

 private:
  bool Reserve(size_t body_bytes);
  void SendBoundaryBefore(ipc::Values values);
  void SendFirst(ipc::Op op, ipc::Values values, uint32_t context, uint16_t flags);
  void Commit(size_t body_bytes, uint16_t flags, uint32_t request);

  Client& client_;
  std::unique_lock<std::mutex> lock_;
  std::span<std::byte> room_;
  std::span<std::byte> body_;
  ipc::Op op_;
  uint32_t context_;
  ipc::Values values_ = nullptr;  // null: nothing to note
  const ipc::Encoded* encoded_ = nullptr;
  RebuildLog::Token token_ = RebuildLog::kNoToken;
  CUresult result_ = CUDA_SUCCESS;
};

}  // namespace shim
