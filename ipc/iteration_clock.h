// The time for which a session has held its lane: in the current iteration, and in all. The worker
// of a session, or a program in in-process mode, keeps a clock and publishes its figures in the
// session's page.
//
// Times are CLOCK_MONOTONIC microseconds. Thread safety: none, one thread's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "ipc/calls/laneway_calls.h"
#include "ipc/iteration_times.h"
#include "ipc/session_file.h"

namespace ipc {

class IterationClock {
 public:
  bool runs() const { return counted_us_ != 0; }
  void Start(int64_t now_us) {
    counted_us_ = now_us;
    if (iteration_us_ == 0) began_us_ = now_us;
  }
  void Stop(Progress* progress, int64_t now_us) {
    Count(progress, now_us);
    counted_us_ = 0;
  }

  // What has passed since the last time. `progress` is null while there is no page.
  void Count(Progress* progress, int64_t now_us) {
    if (!runs()) return;
    const int64_t held_us = now_us - std::exchange(counted_us_, now_us);
    iteration_us_ += held_us;
    if (progress == nullptr) return;
    progress->held_us.fetch_add(static_cast<uint64_t>(held_us), std::memory_order_relaxed);
  }

  // When it got to run in this iteration for the first time.
  int64_t began_us() const { return began_us_; }

  // Returns for how long it was held in this iteration.
  uint64_t EndIteration(const BoundaryInfo& info, Progress* page, int64_t now_us) {
    Progress& progress = *page;
    Count(&progress, now_us);
    const uint64_t took_us = static_cast<uint64_t>(std::exchange(iteration_us_, 0));
    began_us_ = now_us;
    progress.last_iteration_us.store(took_us, std::memory_order_relaxed);
    progress.persistent_bytes.store(info.persistent_bytes, std::memory_order_relaxed);
    progress.ephemeral_bytes.store(info.ephemeral_bytes, std::memory_order_relaxed);
    progress.boundary_us.store(static_cast<uint64_t>(now_us), std::memory_order_relaxed);
    progress.iterations.fetch_add(1, std::memory_order_release);
    return took_us;
  }

  // True when a boundary is to be expected: a program that has passed none for many iterations does
  // not iterate any more.
  bool Iterates(const Progress& progress) const {
    constexpr int64_t kOverdueIterations = 16, kOverdueUsMin = 200'000;
    const int64_t last_us =
        static_cast<int64_t>(progress.last_iteration_us.load(std::memory_order_relaxed));
    return progress.boundary_us.load(std::memory_order_relaxed) != 0 &&
           iteration_us_ < std::max(kOverdueUsMin, last_us * kOverdueIterations);
  }

 private:
  int64_t counted_us_ = 0;    // up to when; 0: it does not run
  int64_t iteration_us_ = 0;  // held since the last boundary
  int64_t began_us_ = 0;
};

}  // namespace ipc
