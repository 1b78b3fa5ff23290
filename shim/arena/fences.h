// When memory that was freed may be used again without waiting.
//
// A free records a Stamp, and the memory may be used at once. The new use needs no fence when all
// calls so far and the new use are on one stream, or when the block was freed in the order of the
// stream that the block is taken for. Otherwise one StreamsJoin orders the old use before the new
// one, and covers every free before the join. The client sends a join when memory is used again
// that was freed after work on several streams, or later, when a second stream comes into use after
// such a re-use: a program with one stream sends nothing (lanes.md: "a free records a fence over
// all streams with unfinished work").
//
// Thread safety: OnWork, OnJoin and AfterWait under the lock that orders the calls (the client's
// send lock); the rest from any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace shim::arena {

inline constexpr int32_t kAnyStream = -1;

// What must be finished before free memory is used again. Epoch 0: nothing ever used it.
struct Stamp {
  uint64_t epoch = 0;
  int32_t slot = kAnyStream;  // freed in the order of this stream
  bool operator==(const Stamp&) const = default;
};

inline Stamp Merge(const Stamp& a, const Stamp& b) {
  if (a.epoch == 0) return b;
  if (b.epoch == 0) return a;
  return {std::max(a.epoch, b.epoch), a.slot == b.slot ? a.slot : kAnyStream};
}

class Fences {
 public:
  // One more call goes to the stream with this slot, the `call`th of the session. REQUIRES: calls
  // in order.
  void OnWork(int32_t slot, uint64_t call) {
    const uint64_t mine = static_cast<uint64_t>(slot) + kFirstSlot;
    const uint64_t code = use_.load(std::memory_order_relaxed) & kCodeMask;
    const uint64_t now = code == kNone || code == mine ? mine : kSeveral;
    use_.store(call << kCodeBits | now, std::memory_order_relaxed);
  }

  Stamp OnFree(int32_t slot) const { return {epoch_.load(std::memory_order_relaxed), slot}; }

  // Memory with this stamp is taken, for the order of stream `slot` or kAnyStream. True: send a
  // join before anything uses it.
  bool OnReuse(const Stamp& stamp, int32_t slot) {
    if (stamp.epoch < epoch_.load(std::memory_order_relaxed)) return false;
    if (slot != kAnyStream && stamp.slot == slot) return false;
    const uint64_t code = use_.load(std::memory_order_relaxed) & kCodeMask;
    if (code == kNone) return false;
    if (code == kSeveral) return true;
    const int32_t only = static_cast<int32_t>(code - kFirstSlot);
    if (slot == only) return false;
    pending_.store(only, std::memory_order_relaxed);
    return false;
  }

  // Asked before a call on the stream: memory was used again that only calls on one other stream
  // may still use. True: send a join first.
  bool NeedsJoin(int32_t slot) const {
    const int32_t only = pending_.load(std::memory_order_relaxed);
    return only != kAnyStream && only != slot;
  }

  // A join goes out.
  void OnJoin() { Reset(); }

  // Waiting for the device, or for the one stream in use: a look before the wait, and a word after
  // it. Calls that other threads sent meanwhile undo it. REQUIRES: AfterWait under the send lock.
  uint64_t BeforeWait() const { return use_.load(std::memory_order_relaxed); }
  // Whether AfterWait(look, slot) would tell anything new.
  bool Tells(uint64_t look, int32_t slot) const {
    const uint64_t code = look & kCodeMask;
    return code != kNone &&
           (slot == kAnyStream || code == static_cast<uint64_t>(slot) + kFirstSlot);
  }
  void AfterWait(uint64_t look, int32_t slot) {
    if (Tells(look, slot) && use_.load(std::memory_order_relaxed) == look) Reset();
  }

 private:
  static constexpr int kCodeBits = 16;
  static constexpr uint64_t kCodeMask = (1 << kCodeBits) - 1;
  static constexpr uint64_t kNone = 0, kSeveral = 1, kFirstSlot = 2;

  void Reset() {
    use_.store(use_.load(std::memory_order_relaxed) & ~kCodeMask, std::memory_order_relaxed);
    epoch_.fetch_add(1, std::memory_order_relaxed);
    pending_.store(kAnyStream, std::memory_order_relaxed);
  }

  std::atomic<uint64_t> use_{0};  // number of the last call << 16 | which stream, or several
  std::atomic<uint64_t> epoch_{1};
  std::atomic<int32_t> pending_{kAnyStream};
};

}  // namespace shim::arena
