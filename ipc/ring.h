// A single-producer single-consumer byte ring in memory shared by two processes.
//
//     RingWords:  head (written by the producer) | tail (written by the consumer) | sleep words
//     data:       kRingBytes, mapped twice in a row, so that a message is always contiguous
//
// Positions only grow; position % kRingBytes is the place. A message begins at an 8-byte boundary
// with its MessageHeader. The peer can write anything at any time. So each side keeps its own
// position in private memory and clamps the other side's position, and the consumer copies a
// message once before reading any of it. A message that the consumer has copied but not taken is
// still in the ring for the producer, and another consumer finds the message there.
//
// Waking: a side that finds nothing to do spins, then announces itself in `*_sleeping` and sleeps
// on its doorbell. The other side rings when, after publishing its position, it sees the
// announcement. A consumer that was woken on the producer's own CPU does not spin before it sleeps
// again: it would keep the producer from running. A producer that waits for its message's effect
// yields while the consumer has yet to run on its CPU.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ipc/channel.h"

namespace ipc {

// Shared, zero-initialised. One cache line per writer.
struct RingWords {
  alignas(64) std::atomic<uint64_t> head;
  alignas(64) std::atomic<uint64_t> tail;
  alignas(64) std::atomic<uint32_t> consumer_sleeping;
  std::atomic<uint32_t> producer_sleeping;
  // The producer sleeps here when the ring is full; the consumer's doorbell is given to the
  // constructors, because a client sleeps on one word for replies and for completions.
  std::atomic<uint32_t> producer_doorbell;
  std::atomic<int32_t> producer_cpu;  // where it rang last
  std::atomic<int32_t> consumer_cpu;  // where it began to wait last
};

// True when the consumer has yet to take a message, and waited for it on the caller's processor. A
// producer that spins there keeps the consumer from running. A hint.
bool ConsumerNeedsThisCpu(const RingWords& words);

class RingSender : public Sender {
 public:
  // `data` is the double mapping. All three outlive this object.
  RingSender(RingWords* words, std::byte* data, std::atomic<uint32_t>* consumer_doorbell);
  std::span<std::byte> Reserve(size_t bytes, int64_t timeout_us) override;
  void Commit(size_t bytes) override;
  // True: Reserve(bytes) succeeds at once. False: Reserve may wait, or may not.
  bool SurelyHasRoom(size_t bytes) const {
    return head_ - tail_cached_ + PaddedBytes(bytes) <= limits::kRingBytes;
  }
  // Nothing sent is unread: what a closing side waits for.
  bool Drained() const { return words_->tail.load(std::memory_order_acquire) == head_; }
  // Where the next message begins.
  uint64_t position() const { return head_; }
  // The same when a message of so many bytes has been sent.
  uint64_t PositionAfter(size_t bytes) const;

  // For a producer whose consumer is replaced. REQUIRES of both: no consumer takes anything now.
  // What the consumer has not taken; false when its words make no sense.
  bool CopyUnread(std::vector<std::byte>* bytes) const;
  // Takes back what was not taken: the next message begins where the consumer stopped.
  void Rewind();

 private:
  bool HasRoom(size_t bytes);
  RingWords* const words_;
  std::byte* const data_;
  std::atomic<uint32_t>* const doorbell_;
  uint64_t head_ = 0;         // ours
  uint64_t tail_cached_ = 0;  // last seen of the consumer's
};

class RingReceiver : public Receiver {
 public:
  RingReceiver(RingWords* words, const std::byte* data, std::atomic<uint32_t>* doorbell);
  std::span<const std::byte> NextUntrusted(int64_t spin_us, int64_t timeout_us) override;
  std::span<const std::byte> PeekUntrusted(int64_t spin_us, int64_t timeout_us) override;
  void SetInterrupt(const std::atomic<uint32_t>* flag) override { flag_ = flag; }
  bool broken() const override { return broken_; }
  bool Pending() override {
    return !broken_ && words_->head.load(std::memory_order_acquire) != tail_;
  }

 private:
  bool WaitForData(int64_t spin_us, int64_t timeout_us);
  void PublishTail();
  RingWords* const words_;
  const std::byte* const data_;
  std::atomic<uint32_t>* const doorbell_;
  const std::atomic<uint32_t>* flag_ = nullptr;
  uint64_t tail_ = 0;         // ours
  uint64_t head_cached_ = 0;  // last seen of the producer's
  bool shares_cpu_ = false;   // with the producer, when it woke us last
  bool broken_ = false;
  uint32_t copied_ = 0;  // bytes of the next message that copy_ holds already; 0: none
  std::unique_ptr<std::byte[]> copy_;
};

}  // namespace ipc
