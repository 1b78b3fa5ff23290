// Capture of the calls that have no body of their own in the client: fills, copies between device
// addresses, waits for events and stream memory operations. Thread safety: any thread.
#pragma once

#include <optional>

#include "ipc/codec_client.h"
#include "shim/graphs/capture.h"

namespace shim::graphs {

// A wait concerns a capture also when it is over: its events stand for nothing then.
inline bool ConcernsCapture(ipc::Op op) {
  return AnyCapture() || op == ipc::Op::cuStreamWaitEvent || op == ipc::Op::cuStreamWaitEvent_ptsz;
}

// The call's result when it is captured or refused. `stream` is the one that the call names.
std::optional<CUresult> CaptureForwarded(ipc::Op op, ipc::Values values, const Stream& stream);

}  // namespace shim::graphs
