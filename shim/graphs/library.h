// Calls of cuBLAS and cublasLt in a stream that captures. What they put into the stream is known in
// the worker alone: it captures each call in a stream of its own, with the settings of that moment,
// and the client's graph gets one node for it. Thread safety: any thread.
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
