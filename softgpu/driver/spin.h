// Short busy waiting before a thread sleeps.
#pragma once

#include <immintrin.h>

#include <chrono>

#include "ipc/calls/limits.h"

namespace softgpu {

// Returns true as soon as `done()` does, false when it hasn't within the spin limit.
template <class Predicate>
bool SpinUntil(const Predicate& done) {
  using Clock = std::chrono::steady_clock;
  if (done()) return true;
  const Clock::time_point end = Clock::now() + std::chrono::microseconds(ipc::limits::kSpinUs);
  do {
    for (int i = 0; i < 16; ++i) {
      _mm_pause();
      if (done()) return true;
    }
  } while (Clock::now() < end);
  return false;
}

}  // namespace softgpu
