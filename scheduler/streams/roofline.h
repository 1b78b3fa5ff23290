// The cost of an operation without a measured time (device_model.h), by its arithmetic, its bytes
// and its blocks. The model has no fitted numbers.
//
// The whole device would take as long as the longer of arithmetic and memory traffic. An operation
// with fewer blocks than the device runs at once can use that share of the device only, and takes
// longer by as much. Thread safety: pure functions.
#pragma once

#include <cstdint>

#include "scheduler/streams/device_model.h"

namespace scheduler::streams {

struct Roofline {
  double multiply_accumulates_a_ns = 0;
  double bytes_a_ns = 0;
  double launch_ns = 0;
  double front_end_ns = 0;
};

// A V100: half of its 7.85 T multiply-accumulates/s, 675 GB/s, 2 us for a start and 2 us of the
// front end.
inline constexpr Roofline kV100 = {3925, 675, 2'000, 2'000};

struct Work {
  int64_t multiply_accumulates = 0;
  int64_t bytes = 0;           // read and written
  int64_t blocks = 1;          // at least 1
  int64_t blocks_at_once = 1;  // at least 1; as many as the whole device runs of this kind
};

Cost CostOf(const Work& work, const Roofline& device);

}  // namespace scheduler::streams
