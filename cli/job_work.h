// The work of a running job, for `laneway graph` and `laneway kernels JOB`: an iteration, and the
// images of modules. Both come by a trace in detail (ipc/work_records.h), which ends when they are
// there. Thread safety: main().
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/graph/launch_counts.h"
#include "cli/graph/records.h"
#include "cli/request.h"

namespace cli {

struct TracedIteration {
  uint64_t session = 0;
  std::string program;
  std::vector<graph::Record> records;
  std::map<uint32_t, int64_t> times_ns;  // of the device, by the number of the record
  graph::Images images;                  // of the modules of its kernels, as far as they came
};

// The first whole iteration of a session of the request's job. The error is a sentence.
absl::StatusOr<TracedIteration> TraceIteration(const Request& request, int64_t for_us);

struct JobKernels {
  graph::Images images;  // of all modules that the job's sessions have loaded, by content
  graph::LaunchesByKernel launches;
  int64_t counted_ns = 0;  // for how long launches were counted
};

// Ends when all images have come and launches were counted for `count_us`, but waits for images no
// longer than `images_us`. The error is a sentence.
absl::StatusOr<JobKernels> FetchKernels(const Request& request, int64_t images_us,
                                        int64_t count_us);

}  // namespace cli
