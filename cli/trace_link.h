// A trace of a job's calls, as a command asks lanewayd for it (daemon/control/call_traces.h).
// Thread safety: main().
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/call_events.h"
#include "cli/request.h"

namespace cli {

class TraceLink {
 public:
  // Between two questions; a busy thread's track holds the events of far longer.
  static constexpr int kBetweenAnswersMs = 10;

  // Of the request's job. `details`: with records of its work (ipc/work_records.h).
  TraceLink(const Request& request, bool details) : request_(request), details_(details) {}

  absl::Status Begin();
  // Takes the events since the last answer. `what` is "more" or "end". "end" ends the trace; asked
  // again, it brings the events that are left.
  absl::Status Take(const char* what, CallsAnswer* answer, JobCalls* calls);

 private:
  absl::StatusOr<std::string> Ask(const char* what, uint64_t value);

  const Request& request_;
  const bool details_;
  uint64_t number_ = 0;
};

}  // namespace cli
