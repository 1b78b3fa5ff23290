// The file in which a worker leaves a session's memory and times to the next worker: an unsealed
// memfd that lanewayd makes and holds, and the session's worker fills. The file is sparse, so only
// written pages take memory.
//
//     uint64_t count | at kProgressOffset: ipc::Progress (progress_map.h) |
//     from kTimesOffset on: EventTime[kHandlesMax], by the event's name |
//     from kSwapOffset on: SwapRecord[count] | from a page's edge on: their bytes, in order
//
// The records are the session's device memory while that is in the host's. `count` is written last
// and cleared first: other than 0, all of it is there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ipc/calls/limits.h"

namespace common {

// When a recorded event was reached.
struct EventTime {
  double ms = 0;        // of CLOCK_MONOTONIC
  uint64_t device = 0;  // its ordinal and 1; 0: it has no time
};

inline constexpr size_t kProgressOffset = 64;
inline constexpr size_t kTimesOffset = 4096;
inline constexpr size_t kSwapOffset = kTimesOffset + ipc::limits::kHandlesMax * sizeof(EventTime);

struct SwapRecord {
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint32_t device = 0;
  uint32_t kind = 0;  // the worker's affair
};

// True when a session's memory lies in the file. Thread safety: any thread.
bool HoldsMemory(int swap_fd);

// What all of them may hold unless --swap says it: half of this machine's memory.
int64_t DefaultSwapBytes();

}  // namespace common
