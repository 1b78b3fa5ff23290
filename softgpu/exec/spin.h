// Short busy waiting before a thread sleeps.
#pragma once

#include <immintrin.h>
#include <sched.h>

#include <atomic>
#include <chrono>

#include "ipc/calls/limits.h"

namespace softgpu {

// On which processor a thread was last seen: a hint. Thread safety: all methods from any thread.
class Whereabouts {
 public:
  void Note() { processor_.store(sched_getcpu(), std::memory_order_relaxed); }
  bool Here() const { return processor_.load(std::memory_order_relaxed) == sched_getcpu(); }

 private:
  std::atomic<int> processor_{-1};
};

// Returns true as soon as `done()` does, false when it hasn't within the spin limit. `other` is who
// is waited for: the scheduler likes to wake a thread where its waker runs, which it then pushes
// aside, and by spinning there it would keep it from doing what it waits for. To yield always would
// cost a whole slice where a third thread wants the processor.
template <class Predicate>
bool SpinUntil(const Predicate& done, const Whereabouts& other = {}) {
  using Clock = std::chrono::steady_clock;
  if (done()) return true;
  const Clock::time_point end = Clock::now() + std::chrono::microseconds(ipc::limits::kSpinUs);
  do {
    for (int i = 0; i < 16; ++i) {
      _mm_pause();
      if (done()) return true;
    }
    if (other.Here()) sched_yield();
  } while (Clock::now() < end);
  return false;
}

}  // namespace softgpu
