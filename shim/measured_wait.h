// One wait of a thread for the device, with the clock and the system's counters that WaitSpin is
// told of at its end. Thread safety: one thread; it lives on the stack.
#pragma once

#include <cstdint>

#include "ipc/futex.h"
#include "shim/thread_state.h"

namespace shim {

class MeasuredWait {
 public:
  // Spins as long as the thread's last waits advise, and at least for so long.
  explicit MeasuredWait(unsigned spin_us_min);
  ~MeasuredWait();
  MeasuredWait(const MeasuredWait&) = delete;

  // Looks until ready(), or until it is time to sleep: false.
  template <class Ready>
  bool Spin(const Ready& ready) {
    do {
      for (int i = 0; i < kLooksPerRound; ++i) {
        if (ready()) return true;
        ipc::CpuRelax();
      }
    } while (EndRound());
    return ready();
  }

 private:
  static constexpr int kLooksPerRound = 32;  // reading the clock costs as much as several looks

  // False: it is time to sleep.
  bool EndRound();
  // Lets others have the processor that wait for it: the worker may have been woken here.
  void GiveWay();

  WaitSpin& advice_;
  const int64_t begin_ns_;
  const int64_t spin_ns_;
  int64_t switches_ =
      -1;  // of this thread against its will, when the long spin began; -1: it hasn't
};

}  // namespace shim
