// Stream capture in the client: all calls pass through it, so it captures alone, and the worker
// hears of the finished graph. graphs/capture.h knows which stream captures. Thread safety: every
// function, from any thread.
#pragma once

#include <atomic>
#include <optional>

#include "graphs/capture.h"
#include "shim/graphs/graph.h"
#include "shim/state.h"

namespace shim::graphs {

using Captures = ::graphs::Captures<GraphUse>;

// Those of the process.
Captures& AllCaptures();
::graphs::CaptureStream CaptureStreamOf(const Stream& stream);
// The stream is being destroyed.
void AbandonCapture(const Stream& stream);

// --- for the calls that put something into a stream ----------------------------------------------
// Each gives the call's result when a capture is concerned, and nothing when the call shall do what
// it always does. A call asks first whether any stream captures.

extern std::atomic<int> capturing_streams;  // the client library's: one for all facades
inline bool AnyCapture() { return capturing_streams.load(std::memory_order_relaxed) != 0; }

// Work becomes a node. Work in the legacy stream is refused while blocking streams capture.
std::optional<CUresult> CaptureWork(const Stream& stream, Work work);
std::optional<CUresult> RefuseInCapture(const Stream& stream, bool is_work);
// Work that CUDA doesn't capture; and what is no work, such as a query. These two ask by
// themselves whether any stream captures.
inline std::optional<CUresult> RefuseWork(const Stream& stream) {
  return AnyCapture() ? RefuseInCapture(stream, true) : std::nullopt;
}
inline std::optional<CUresult> RefuseCapture(const Stream& stream) {
  return AnyCapture() ? RefuseInCapture(stream, false) : std::nullopt;
}

// An event recorded in a stream that captures stands for the stream's last nodes (Event::captured)
// until it is recorded elsewhere.
std::optional<CUresult> RecordInCapture(const Stream& stream, CUevent event, Event* state,
                                        unsigned flags);
// Also to be asked when the event is `captured` and no stream captures any more.
std::optional<CUresult> WaitInCapture(const Stream& stream, CUevent event, const Event& state,
                                      unsigned flags);
void ForgetCaptured(CUevent event, Event* state);

}  // namespace shim::graphs
