// Stream capture.
#include "shim/graphs/capture.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "shim/client.h"
#include "shim/driver/graph_lookup.h"
#include "shim/driver/local.h"
#include "shim/driver/ready.h"
#include "shim/streams.h"
#include "shim/thread_state.h"

namespace local {
namespace {

using shim::graphs::AllCaptures;
using shim::graphs::Captures;

CUresult FindCaptureStream(CUstream program, graphs::CaptureStream* stream) {
  shim::Stream* found = nullptr;
  const CUresult result = shim::Streams::Process().UseCurrent(program, &found);
  if (result == CUDA_SUCCESS) *stream = shim::graphs::CaptureStreamOf(*found);
  return result;
}

uint64_t ThreadNumber() { return shim::ThisThread().number; }
CUstreamCaptureMode& ThreadMode() {
  thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}
std::vector<CUgraphNode>& ThreadNodes() {
  thread_local std::vector<CUgraphNode> nodes;
  return nodes;
}

}  // namespace

#include "ipc/calls/graph_captures.inc"

}  // namespace local
