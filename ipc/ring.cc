#include "ipc/ring.h"

#include <sched.h>

#include <cassert>
#include <cstring>

#include "ipc/futex.h"

namespace ipc {
namespace {

constexpr uint64_t kRing = limits::kRingBytes;
constexpr int kRelaxesPerClockRead = 32;  // reading the clock costs as much as several pauses

void Ring(std::atomic<uint32_t>* doorbell) {
  doorbell->fetch_add(1, std::memory_order_seq_cst);
  FutexWakeAll(doorbell);
}

struct Patience {
  int64_t spin_us;
  int64_t timeout_us;
  const std::atomic<uint32_t>* flag = nullptr;  // ends the wait, too
};

// Spins, then sleeps on `doorbell` with `sleeping` announced, until ready() or the time is over.
template <class Ready>
bool SpinThenSleep(Ready ready, std::atomic<uint32_t>* sleeping, std::atomic<uint32_t>* doorbell,
                   Patience patience) {
  const int64_t spin_us = patience.spin_us, timeout_us = patience.timeout_us;
  if (ready()) return true;
  if (timeout_us <= 0) return false;
  const int64_t start = MonotonicNs();
  int64_t now = start;
  while (now - start < spin_us * 1000) {
    for (int i = 0; i < kRelaxesPerClockRead; ++i) {
      if (ready()) return true;
      CpuRelax();
    }
    now = MonotonicNs();
  }
  bool done = false;
  while (!done) {
    const uint32_t ticket = doorbell->load(std::memory_order_seq_cst);
    sleeping->store(1, std::memory_order_seq_cst);
    if (ready()) {
      done = true;
      break;
    }
    const int64_t left_us = timeout_us - (MonotonicNs() - start) / 1000;
    if (left_us <= 0) break;
    if (patience.flag != nullptr && patience.flag->load(std::memory_order_seq_cst) != 0) break;
    FutexWait(doorbell, ticket, left_us);
  }
  sleeping->store(0, std::memory_order_relaxed);
  return done || ready();
}

}  // namespace

bool ConsumerNeedsThisCpu(const RingWords& words) {
  return words.tail.load(std::memory_order_relaxed) != words.head.load(std::memory_order_relaxed) &&
         words.consumer_cpu.load(std::memory_order_relaxed) == sched_getcpu();
}

RingSender::RingSender(RingWords* words, std::byte* data, std::atomic<uint32_t>* consumer_doorbell)
    : words_(words), data_(data), doorbell_(consumer_doorbell) {
  head_ = words_->head.load(std::memory_order_relaxed);
  tail_cached_ = words_->tail.load(std::memory_order_acquire);
}

bool RingSender::HasRoom(size_t bytes) {
  if (SurelyHasRoom(bytes)) return true;
  const uint64_t tail = words_->tail.load(std::memory_order_seq_cst);
  // A tail outside [cached, head] is a peer that lies; keep what we knew, the ring then stays full.
  if (tail - tail_cached_ <= head_ - tail_cached_) tail_cached_ = tail;
  return head_ - tail_cached_ + PaddedBytes(bytes) <= kRing;
}

std::span<std::byte> RingSender::Reserve(size_t bytes, int64_t timeout_us) {
  assert(bytes <= limits::kMessageBytesMax);
  if (!HasRoom(bytes) &&
      !SpinThenSleep([&] { return HasRoom(bytes); }, &words_->producer_sleeping,
                     &words_->producer_doorbell, {limits::kSpinUs, timeout_us})) {
    return {};
  }
  return {data_ + head_ % kRing, bytes};
}

uint64_t RingSender::PositionAfter(size_t bytes) const { return head_ + PaddedBytes(bytes); }

void RingSender::Commit(size_t bytes) {
  head_ = PositionAfter(bytes);
  // Against the consumer's announcement: one of us two sees the other's word (a total order, not a
  // fence, because ThreadSanitizer knows no fences).
  words_->head.store(head_, std::memory_order_seq_cst);
  if (words_->consumer_sleeping.load(std::memory_order_seq_cst) != 0) {
    words_->consumer_sleeping.store(0, std::memory_order_relaxed);
    words_->producer_cpu.store(sched_getcpu(), std::memory_order_relaxed);
    Ring(doorbell_);
  }
}

bool RingSender::CopyUnread(std::vector<std::byte>* bytes) const {
  const uint64_t tail = words_->tail.load(std::memory_order_seq_cst);
  if (head_ - tail > kRing) return false;
  bytes->assign(data_ + tail % kRing, data_ + tail % kRing + (head_ - tail));
  return true;
}

void RingSender::Rewind() {
  tail_cached_ = words_->tail.load(std::memory_order_seq_cst);
  head_ = tail_cached_;
  words_->head.store(head_, std::memory_order_seq_cst);
}

RingReceiver::RingReceiver(RingWords* words, const std::byte* data, std::atomic<uint32_t>* doorbell)
    : words_(words),
      data_(data),
      doorbell_(doorbell),
      copy_(std::make_unique<std::byte[]>(limits::kMessageBytesMax)) {
  tail_ = words_->tail.load(std::memory_order_relaxed);
  head_cached_ = tail_;
}

bool RingReceiver::WaitForData(int64_t spin_us, int64_t timeout_us) {
  const auto ready = [&] {
    head_cached_ = words_->head.load(std::memory_order_seq_cst);
    return head_cached_ != tail_;
  };
  if (ready()) return true;
  const uint32_t rung = doorbell_->load(std::memory_order_relaxed);
  words_->consumer_cpu.store(sched_getcpu(), std::memory_order_relaxed);
  const bool came = SpinThenSleep(ready, &words_->consumer_sleeping, doorbell_,
                                  {shares_cpu_ ? 0 : spin_us, timeout_us, flag_});
  if (doorbell_->load(std::memory_order_relaxed) != rung)
    shares_cpu_ = words_->producer_cpu.load(std::memory_order_relaxed) == sched_getcpu();
  return came;
}

void RingReceiver::PublishTail() {
  words_->tail.store(tail_, std::memory_order_seq_cst);
  // A producer waits for a quarter of the ring, not for a message, so that it wakes rarely.
  if (words_->producer_sleeping.load(std::memory_order_seq_cst) != 0 &&
      head_cached_ - tail_ <= kRing - kRing / 4) {
    words_->producer_sleeping.store(0, std::memory_order_relaxed);
    Ring(&words_->producer_doorbell);
  }
}

std::span<const std::byte> RingReceiver::PeekUntrusted(int64_t spin_us, int64_t timeout_us) {
  if (copied_ != 0) return {copy_.get(), copied_};
  if (broken_) return {};
  if (head_cached_ == tail_ && !WaitForData(spin_us, timeout_us)) return {};
  const uint64_t available = head_cached_ - tail_;
  const std::byte* message = data_ + tail_ % kRing;
  uint32_t bytes = 0;
  std::memcpy(&bytes, message, sizeof bytes);  // read once: the peer may change it under us
  if (available > kRing || bytes < sizeof(MessageHeader) || bytes > limits::kMessageBytesMax ||
      PaddedBytes(bytes) > available) {
    broken_ = true;
    return {};
  }
  std::memcpy(copy_.get(), message, bytes);
  std::memcpy(copy_.get(), &bytes, sizeof bytes);
  copied_ = bytes;
  return {copy_.get(), bytes};
}

std::span<const std::byte> RingReceiver::NextUntrusted(int64_t spin_us, int64_t timeout_us) {
  const std::span<const std::byte> message = PeekUntrusted(spin_us, timeout_us);
  if (message.empty()) return {};
  copied_ = 0;
  tail_ += PaddedBytes(message.size());
  PublishTail();
  return message;
}

}  // namespace ipc
