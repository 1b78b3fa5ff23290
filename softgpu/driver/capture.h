// Stream capture for the calls of the software GPU; graphs/capture.h knows which stream captures.
//
// A call that puts something into a stream asks whether the stream captures, and makes a node of
// its work then. Thread safety: every function may be called from any thread.
#pragma once

#include <cuda.h>

#include <atomic>
#include <memory>
#include <optional>

#include "graphs/capture.h"
#include "softgpu/driver/event.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/operation.h"

namespace softgpu {

class Stream;

using Captures = graphs::Captures<GraphUse>;

// Those of the process.
Captures& AllCaptures();
graphs::CaptureStream CaptureStreamOf(Stream& stream);
bool IsCapturing(Stream& stream);
// No more calls will name the stream: a capture that it is part of ends.
void AbandonCapture(const Stream& stream);

// A node instead of work. REQUIRES: the stream captured just now.
CUresult AddToCapture(Stream& stream, Work work);
// For a call that can't be captured.
CUresult RefuseWhileCapturing(Stream& stream);
// For work of a stream that doesn't capture, which the legacy stream must not get while blocking
// streams of its context capture.
CUresult CheckLegacyCapture(Stream& stream);
CUresult SubmitChecked(const std::shared_ptr<Stream>& stream, std::unique_ptr<Operation> operation);

// An event that is recorded in a capturing stream stands for the stream's last nodes. Nothing when
// the stream doesn't capture.
std::optional<CUresult> RecordInCapture(Stream& stream, Event& event);
// The stream waits for the event's recording, and joins its capture if there is one. Nothing when
// no capture is concerned.
std::optional<CUresult> WaitInCapture(Stream& stream, const Event::Mark& mark);

}  // namespace softgpu
