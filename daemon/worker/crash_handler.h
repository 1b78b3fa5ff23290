// When a signal ends the worker: says whose work its thread was doing (daemon/common/crash_note.h),
// and lets the process die of the signal.
//
// A thread that runs a stream of the software GPU works for the stream's session, also while
// another session waits for the stream. Any other thread of a session works for that session.
// Thread safety: as said.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/worker/stream_owners.h"

namespace worker {

// From now on, until the process ends. running_stream: the driver's answer, from a signal handler,
// whose stream this thread runs; null: no driver can say. Call once, before there are threads.
void HandleCrashes(const std::string& note_path, const StreamOwners* owners,
                   CUstream (*running_stream)());

// This thread works for the session from now on.
void SetThreadSession(uint64_t session_id);

}  // namespace worker
