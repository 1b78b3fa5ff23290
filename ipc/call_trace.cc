#include "ipc/call_trace.h"

#include <algorithm>
#include <cstring>

namespace ipc {
namespace {

static_assert((kTrackEventsMax & (kTrackEventsMax - 1)) == 0, "positions wrap around");

TraceWords* WordsOf(std::byte* area) { return reinterpret_cast<TraceWords*>(area); }

std::byte* TraceRing(std::byte* area, uint32_t track) {
  return area + kTraceWordsBytes + track * kTraceRingBytes;
}

}  // namespace

TraceWriter::TraceWriter(std::byte* area, uint32_t track, uint32_t thread)
    : words_(&WordsOf(area)->tracks[track]),
      ring_(reinterpret_cast<TraceEvent*>(TraceRing(area, track))),
      head_(words_->head.load(std::memory_order_relaxed)) {
  words_->thread.store(thread, std::memory_order_relaxed);
}

void TraceWriter::Add(const TraceEvent& event) {
  if (words_ == nullptr) return;
  if (head_ - words_->tail.load(std::memory_order_acquire) >= kTrackEventsMax) {
    words_->lost.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  std::memcpy(&ring_[head_ % kTrackEventsMax], &event, sizeof event);
  words_->head.store(++head_, std::memory_order_release);
}

bool TraceWriter::AddRecord(TraceEvent event, std::span<const std::byte> bytes) {
  if (words_ == nullptr) return false;
  event.amount = bytes.size();
  const uint64_t places = PlacesOfRecord(bytes.size());
  const uint64_t taken = head_ - words_->tail.load(std::memory_order_acquire);
  if (taken > kTrackEventsMax || places > kTrackEventsMax - taken) return false;
  std::memcpy(&ring_[head_ % kTrackEventsMax], &event, sizeof event);
  for (uint64_t i = 1; i < places; ++i) {
    const size_t there = std::min(bytes.size(), sizeof event);
    std::memcpy(&ring_[(head_ + i) % kTrackEventsMax], bytes.data(), there);
    bytes = bytes.subspan(there);
  }
  head_ += places;
  words_->head.store(head_, std::memory_order_release);
  return true;
}

void TraceWriter::CountLost() {
  if (words_ != nullptr) words_->lost.fetch_add(1, std::memory_order_relaxed);
}

uint32_t ThreadsUntrusted(const std::byte* area, uint32_t number) {
  const uint64_t claims =
      reinterpret_cast<const TraceWords*>(area)->claims.load(std::memory_order_relaxed);
  return claims >> 32 == number ? static_cast<uint32_t>(claims) : 0;
}

uint32_t ClaimTrack(std::byte* area, uint32_t number) {
  std::atomic<uint64_t>& claims = WordsOf(area)->claims;
  uint64_t seen = claims.load(std::memory_order_relaxed);
  for (;;) {
    const uint64_t taken = seen >> 32 == number ? seen & UINT32_MAX : 0;
    if (taken == UINT32_MAX) return kTraceTracks;
    const uint64_t next = uint64_t{number} << 32 | (taken + 1);
    if (claims.compare_exchange_weak(seen, next, std::memory_order_relaxed)) {
      return taken < kClientThreadsMax ? kClientTracks + static_cast<uint32_t>(taken)
                                       : kTraceTracks;
    }
  }
}

TraceReader::TraceReader(std::byte* area, uint32_t track)
    : words_(&WordsOf(area)->tracks[track]),
      ring_(TraceRing(area, track)),
      tail_(words_->head.load(std::memory_order_acquire)),
      lost_before_(words_->lost.load(std::memory_order_relaxed)) {
  words_->tail.store(tail_, std::memory_order_release);
}

// A position that no writer can have reached is taken for a full ring: a reader of lies reads old
// bytes.
void TraceReader::TakeUntrusted(size_t events_max, std::vector<std::byte>* bytes) {
  const uint64_t head = words_->head.load(std::memory_order_acquire);
  const uint64_t there = std::min(head - tail_, kTrackEventsMax);
  for (uint64_t left = std::min<uint64_t>(there, events_max); left != 0;) {
    const uint64_t at = tail_ % kTrackEventsMax;
    const uint64_t events = std::min(left, kTrackEventsMax - at);
    const std::byte* const from = ring_ + at * sizeof(TraceEvent);
    bytes->insert(bytes->end(), from, from + events * sizeof(TraceEvent));
    tail_ += events;
    left -= events;
  }
  words_->tail.store(tail_, std::memory_order_release);
}

uint64_t TraceReader::lost_untrusted() const {
  return words_->lost.load(std::memory_order_relaxed) - lost_before_;
}

}  // namespace ipc
