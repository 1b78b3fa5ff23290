// Calls of cuBLAS and cublasLt in a stream that captures. Only the worker knows the work that such
// a call puts into its stream. The worker captures each call in a separate stream, with the
// handle's settings of that moment, and the client's graph gets one node for the call. Thread
// safety: any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "ipc/codec_client.h"
#include "shim/graphs/capture.h"

namespace shim::graphs {

// Nothing when the call does not concern a capture. `status`: the library's answer.
std::optional<CUresult> CaptureCall(const Stream& stream, ipc::Op op, uint32_t wire,
                                    ipc::Values values, uint32_t* status);

}  // namespace shim::graphs
