// How long a session's iterations take and how long it waited: part of the session page, so that
// counting costs the worker a few stores and the daemon reads without asking.
//
// The worker's session thread is the only honest writer. The client can write here, too: a reader
// bounds each value, and decides nothing about other sessions by it. Times are CLOCK_MONOTONIC
// microseconds. Thread safety: one writer, any readers; a reader may see an iteration in one word
// and not yet in another.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace ipc {

inline constexpr size_t kTimeBuckets = 192;
inline constexpr size_t kRecentIterations = 32;

// Zero in a new session file: no iterations.
struct IterationTimes {
  std::atomic<uint64_t> count;                // iterations that are counted here
  std::atomic<uint64_t> total_us;             // their times together
  std::atomic<uint64_t> waited_us;            // waits that are over
  std::atomic<uint64_t> switches;             // times that the session handed its lane over
  std::atomic<uint32_t> times[kTimeBuckets];  // how many took how long, by BucketOf()
  struct {
    std::atomic<uint64_t> end_us;
    std::atomic<uint64_t> took_us;
  } recent[kRecentIterations];  // iteration `n`, the first is 0, at n % kRecentIterations
};

// Eight buckets per doubling: a time is known within 1/16 of itself. The last one takes whatever is
// longer than a minute.
constexpr size_t BucketOf(uint64_t us) {
  if (us < 8) return static_cast<size_t>(us);
  const unsigned exponent = static_cast<unsigned>(std::bit_width(us)) - 1;  // >= 3
  const size_t bucket = (exponent - 2) * 8 + ((us >> (exponent - 3)) & 7);
  return bucket < kTimeBuckets ? bucket : kTimeBuckets - 1;
}

// The shortest time of a bucket.
constexpr uint64_t BucketBegin(size_t bucket) {
  if (bucket < 8) return bucket;
  return (uint64_t{8} + bucket % 8) << (bucket / 8 - 1);
}

// Counts an iteration at the boundary that ends it. `took_us` is the iteration's time without the
// wait for its grant.
inline void CountIteration(IterationTimes* times, uint64_t end_us, uint64_t took_us) {
  constexpr std::memory_order kRelaxed = std::memory_order_relaxed;
  const uint64_t number = times->count.load(kRelaxed);
  std::atomic<uint32_t>& bucket = times->times[BucketOf(took_us)];
  bucket.store(bucket.load(kRelaxed) + 1, kRelaxed);
  times->total_us.store(times->total_us.load(kRelaxed) + took_us, kRelaxed);
  times->recent[number % kRecentIterations].end_us.store(end_us, kRelaxed);
  times->recent[number % kRecentIterations].took_us.store(took_us, kRelaxed);
  times->count.store(number + 1, std::memory_order_release);
}

// When a wait ends, and when a lane is handed over.
inline void CountWait(IterationTimes* times, uint64_t waited_us) {
  constexpr std::memory_order kRelaxed = std::memory_order_relaxed;
  times->waited_us.store(times->waited_us.load(kRelaxed) + waited_us, kRelaxed);
}
inline void CountSwitch(IterationTimes* times) {
  constexpr std::memory_order kRelaxed = std::memory_order_relaxed;
  times->switches.store(times->switches.load(kRelaxed) + 1, kRelaxed);
}

}  // namespace ipc
