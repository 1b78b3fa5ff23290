// A driver table whose calls are written down, for tests of what the worker asks the driver to do.
// Thread safety: one test at a time.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "daemon/worker/session.h"

namespace worker {

struct Recording {
  std::vector<std::string> calls;       // "wait s2 e1", "record e1 s1", ...
  std::set<CUdeviceptr> mapped;         // starts of live mappings
  std::set<CUevent> unfinished_events;  // cuEventQuery says NOT_READY
  std::set<CUstream> busy_streams;      // cuStreamQuery says NOT_READY
  uint64_t capacity_bytes = 0;          // of the extent source
  uint64_t used_bytes = 0;
  int next_handle = 1;
};

// Empties and returns the one recording.
Recording& FreshRecording();
// Its driver and extents; contexts and poison are not set.
Environment RecordingEnvironment();

}  // namespace worker
