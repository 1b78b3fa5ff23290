// The client's end of chunks: a sender that holds messages back while they agree with a run that
// the session sent before, and sends one message for the run (ipc/chunks).
//
// Before each message the pipeline says whether the message may be held (Begin). Messages that are
// held are not in the ring, so what waits for them must have them sent first: a message that goes
// alone does so, and Pipeline::Flush() does. HeldWatch sends what is held and followed by nothing.
//
// Thread safety: under the send lock; holds(), held() and in_run() from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "ipc/channel.h"
#include "ipc/chunks/chunk_matcher.h"
#include "ipc/ring.h"
#include "shim/repeat_watch.h"

namespace shim {

class ChunkSender final : public ipc::Sender {
 public:
  enum class Fold : uint8_t {
    kAlone,    // the message goes at once, after all that is held
    kCuts,     // the same, but the run goes on behind it
    kFolds,    // it may be held
    kEndsRun,  // it may be part of a chunk, as the last message: the program may wait for it
  };
  // `ring` is in `channel`, or below it. The area outlives the sender.
  ChunkSender(std::unique_ptr<ipc::Sender> channel, ipc::RingSender* ring,
              std::span<std::byte> area)
      : channel_(std::move(channel)), ring_(*ring), matcher_(area) {}

  // How the next message goes.
  void Begin(Fold fold) { fold_ = holds_nothing_ ? Fold::kAlone : fold; }
  // Whether messages of the next runs may be held. Otherwise runs are only learned.
  void MayHold(bool may_hold) { matcher_.MayHold(may_hold); }
  // From now on every message goes alone. REQUIRES: no message was sent yet.
  void HoldNothing() { holds_nothing_ = true; }
  // Is told of each repeat. It outlives the sender.
  void SetWatch(RepeatWatch* watch) { watch_ = watch; }
  // Inline for a message behind others that are held.
  std::span<std::byte> Reserve(size_t bytes, int64_t timeout_us) override {
    if (held() != 0 && fold_ == Fold::kFolds && ring_.SurelyHasRoom(kRunRoom))
      return matcher_.Room().first(bytes);
    return ReserveFirst(bytes, timeout_us);
  }
  void Commit(size_t bytes) override {
    if (GoesAlone()) return ring_.Commit(bytes);
    Follow(matcher_.OnMessage(bytes, fold_ == Fold::kEndsRun));
  }

  // Whether the worker is to verify what is repeated from now on.
  void SetVerify(bool verify) { verify_ = verify; }
  const ipc::ChunkMatcher::Counts& counts() const { return matcher_.counts(); }

  bool holds() const { return held() != 0; }
  // A run has begun. Before a wait it must end, so that the run is whole before the wait next time.
  bool in_run() const { return in_run_.load(std::memory_order_relaxed); }
  // 0: nothing is held. Another number each time that a message is held.
  uint64_t held() const { return held_.load(std::memory_order_relaxed); }
  // Counts up when messages are held again after a while (HeldWatch sleeps on it).
  std::atomic<uint32_t>& stirred() { return stirred_; }
  std::atomic<bool>& watch_sleeps() { return watch_sleeps_; }

 private:
  static constexpr size_t kRunRoom = ipc::limits::kChunkBytesMax;
  static_assert(kRunRoom <= ipc::limits::kMessageBytesMax);

  bool GoesAlone() const { return fold_ == Fold::kAlone || fold_ == Fold::kCuts; }
  std::span<std::byte> ReserveFirst(size_t bytes, int64_t timeout_us);
  void Follow(ipc::ChunkMatcher::Verdict verdict) {
    if (verdict == ipc::ChunkMatcher::Verdict::kHold && held() != 0) [[likely]] {
      held_.store(++holds_so_far_, std::memory_order_relaxed);
      return;
    }
    Obey(verdict);
  }
  void Obey(ipc::ChunkMatcher::Verdict verdict);
  // REQUIRES: room for what is held.
  void SendUnsent();
  void SendRepeat();
  void SendForgetOrders();
  void Hold();

  const std::unique_ptr<ipc::Sender> channel_;
  ipc::RingSender& ring_;
  ipc::ChunkMatcher matcher_;
  RepeatWatch* watch_ = nullptr;
  Fold fold_ = Fold::kAlone;
  bool holds_nothing_ = false;
  bool verify_ = false;
  uint64_t holds_so_far_ = 0;
  std::atomic<uint64_t> held_{0};
  std::atomic<bool> in_run_{false};
  std::atomic<uint32_t> stirred_{0};
  std::atomic<bool> watch_sleeps_{false};
};

}  // namespace shim
