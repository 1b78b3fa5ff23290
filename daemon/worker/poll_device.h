// The one poll of the worker: for states of the device and of callbacks that ring no bell.
//
// CUDA's waiting calls would wait for the whole context, and callbacks may not run where the device
// has failed early, so a session's thread asks cuStreamQuery, cuEventQuery or a counter again and
// again. Thread safety: any thread.
#pragma once

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace worker {

// A context switch takes a tenth of it, and a call that waits is late by no more.
inline constexpr absl::Duration kPollDevicePeriod = absl::Microseconds(50);

// Lets one period pass, for a loop that does more than ask.
inline void AwaitPollPeriod() { absl::SleepFor(kPollDevicePeriod); }

// Asks `is_over` now, and once a period until it says true. A caller that may give up asks for that
// in `is_over`, too.
template <class IsOver>
void PollDevice(IsOver is_over) {
  while (!is_over()) AwaitPollPeriod();
}

}  // namespace worker
