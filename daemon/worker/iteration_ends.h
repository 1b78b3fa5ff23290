// How long iterations take where the device ends them: a program may be far ahead of it.
//
// A boundary that leaves the ring is marked by an event on the stream of the iteration's last work;
// the iteration is counted once the device has reached that. A device that is done already has
// reached it at the boundary. Costs an event's record for each iteration. Thread safety: one
// session's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "daemon/worker/session.h"
#include "ipc/iteration_times.h"

namespace worker {

class IterationEnds {
 public:
  IterationEnds(const Environment& environment, ipc::IterationTimes* times)
      : environment_(environment), times_(times) {}
  ~IterationEnds() { Clear(); }
  IterationEnds(const IterationEnds&) = delete;

  // Where the boundary left the ring. Microseconds of CLOCK_MONOTONIC.
  struct Boundary {
    int64_t began_us = 0;  // when the session got to run in this iteration
    int64_t ended_us = 0;
    uint64_t held_us = 0;  // of that, without waits
  };
  // `stream`: of its last work; null: it had none.
  void OnBoundary(CUstream stream, const Boundary& boundary);
  // Counts what the device has ended meanwhile.
  void CountEnded();
  // Counts the rest as ended. REQUIRES: the device is done, or failed.
  void Clear();

 private:
  struct Pending {
    Boundary boundary;
    CUevent event;  // null: it ended where it left the ring
  };
  static constexpr size_t kPendingMax = 256;  // further ones end where they leave the ring

  CUevent TakeEvent();
  void Count(const Pending& pending);

  const Environment& environment_;
  ipc::IterationTimes* const times_;
  std::deque<Pending> pending_;
  std::vector<CUevent> spare_;
  CUevent last_ = nullptr;  // of the last one that was counted
  int64_t last_us_ = 0;     // when the device reached its end
};

}  // namespace worker
