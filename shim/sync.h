// Waiting for the device without a round trip: completion words (ipc/session_file.h) say how far
// each stream is. A wait first sends a mark when the stream has had calls since the last one.
//
// All of them return the session's first asynchronous failure where CUDA would.
// Thread safety: any thread.
#pragma once

#include "shim/state.h"

namespace shim {

CUresult SynchronizeStream(const Stream& stream);
// 600 (not ready) or success.
CUresult QueryStream(const Stream& stream);
// All streams of this session on the device.
CUresult SynchronizeDevice(int ordinal);

CUresult SynchronizeEvent(uint64_t value, const Event& event);
CUresult QueryEvent(uint64_t value, const Event& event);

// Waits for one sequence of the stream's slot, sent with some call before.
CUresult WaitForSequence(const Stream& stream, uint64_t sequence);
// The same for a copy that limits.h calls short.
CUresult WaitForShortCopy(const Stream& stream, uint64_t sequence);
// The same where no asynchronous failure may be reported.
CUresult WaitForSequenceOnly(const Stream& stream, uint64_t sequence);

// After every queued call on a stream: waits when more than about a thousand of its calls are
// unfinished, as the vendor's driver does. Without a bound a program that never waits would queue
// work without end, and everything that waits for the device would wait for all of it.
CUresult Throttle(const Stream& stream);

}  // namespace shim
