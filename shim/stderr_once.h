// What the client tells people: one sentence per cause, on stderr, once. And the one place where a
// failure of ours (absl::Status) becomes a CUresult. Thread safety: any thread. Nothing here
// allocates after the first call, throws or touches stdout.
#pragma once

#include "ipc/calls/vendor.h"

#include <atomic>
#include <initializer_list>
#include <string_view>

#include "absl/status/status.h"

namespace shim {

// Writes "laneway: <parts>\n" to stderr unless `said` was set before.
void StderrOnce(std::atomic<bool>& said, std::initializer_list<std::string_view> parts);

// NotFound, Unavailable: 805 (no daemon); PermissionDenied: 800; FailedPrecondition,
// InvalidArgument: 803 (another version); ResourceExhausted: 304; anything else: 806.
CUresult FromStatus(const absl::Status& status);

}  // namespace shim
