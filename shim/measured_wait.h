// One wait of a thread for the device, with the clock and the system's counters that WaitSpin is
// told of at its end. An event of the trace, where the session is traced. Thread safety: one
// thread; it lives on the stack.
#pragma once

#include <cstdint>

#include "ipc/futex.h"
#include "shim/call_trace.h"
#include "shim/thread_state.h"

namespace shim {

class MeasuredWait {
 public:
  // For the stream with this slot. Spins as long as the thread's last waits advise, and at least
  // for so long.
  MeasuredWait(uint32_t slot, unsigned spin_us_min);
  ~MeasuredWait();
  MeasuredWait(const MeasuredWait&) = delete;

  // Looks until ready(), or until it is time to sleep: false. Leaves the processor to the worker
  // while worker_needs_it().
  template <class Ready, class WorkerNeedsIt>
  bool Spin(const Ready& ready, const WorkerNeedsIt& worker_needs_it) {
    do {
      for (int i = 0; i < kLooksPerRound; ++i) {
        if (ready()) return true;
        ipc::CpuRelax();
      }
    } while (EndRound(worker_needs_it()));
    return ready();
  }
  // The wait goes on asleep.
  void OnSleep() { span_.SetAmount(1); }

 private:
  static constexpr int kLooksPerRound = 32;  // reading the clock costs as much as several looks

  // False: it is time to sleep.
  bool EndRound(bool worker_needs_processor);
  // Lets others have the processor that wait for it.
  void GiveWay();

  TracedSpan span_;
  WaitSpin& advice_;
  const int64_t begin_ns_;
  const int64_t spin_ns_;
  int64_t switches_ =
      -1;  // of this thread against its will, when the long spin began; -1: it hasn't
};

}  // namespace shim
