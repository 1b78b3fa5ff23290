// How long a thread that waits for the device spins before it sleeps: decided by what the thread's
// last waits took.
//
// A wait that sleeps pays for two wake-ups, the worker's ring and the system's way back, which is
// more than many short kernels take. A wait that spins longer saves both, as long as nothing else
// wants the processor. Beside other programs, or where the device works on the same processors, the
// spin keeps those from running that it waits for. So the waits of a thread are measured in both
// ways, and the shorter way is taken. The other way is tried again from time to time. A long spin
// during which the system gave the processor to another thread ends long spins for a while, for
// longer each time.
//
// Waits that end within limits::kSpinUs are the same in both ways, and tell nothing. Pure but for
// its own memory: no clock, no system call. Thread safety: one thread.
#pragma once

#include <cstdint>

#include "ipc/calls/limits.h"

namespace shim {

class WaitSpin {
 public:
  // Longer waits are not worth a processor: the wake-ups are a small part of them.
  static constexpr unsigned kLongSpinUs = 200;

  // For how long the next wait spins: kSpinUs or kLongSpinUs.
  unsigned NextUs() const { return spins_long_ ? kLongSpinUs : ipc::limits::kSpinUs; }

  struct Wait {
    int64_t took_us = 0;
    bool disturbed = false;  // another thread had the processor during the spin
  };
  // The wait that NextUs() was asked for has ended.
  void OnEnd(const Wait& wait);

 private:
  static constexpr uint32_t kTrialEvery = 64;  // waits
  static constexpr uint32_t kTrialWaits = 4;   // of a trial
  static constexpr uint32_t kPauseMin = 16;    // waits without a long spin
  static constexpr uint32_t kPauseMax = 1u << 12;
  static constexpr int64_t kTookUsMax = 1000;  // one wait alone must not decide
  static constexpr int64_t kShare = 4;         // of the newest wait in a mean: one in so many

  // As many waits as were planned have ended: which way is next.
  void Turn();
  // Others want the processor.
  void Pause();

  // Means of waits that go to sleep soon, and of those that spin long; 0: not measured.
  int64_t sleeping_us_ = 0;
  int64_t spinning_us_ = 0;
  bool spins_long_ = false;
  bool in_trial_ = false;              // of the way that is not the better one, as far as is known
  uint32_t waits_left_ = kTrialWaits;  // of the trial, or until the next one
  uint32_t pause_ = 0;                 // after the last disturbance
};

}  // namespace shim
