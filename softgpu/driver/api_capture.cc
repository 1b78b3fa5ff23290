// Stream capture.
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "softgpu/driver/api.h"
#include "softgpu/driver/capture.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/graph_handles.h"
#include "softgpu/driver/handles.h"
#include "softgpu/driver/thread_state.h"

namespace softgpu::api {
namespace {

CUresult FindCaptureStream(CUstream handle, graphs::CaptureStream* stream) {
  std::shared_ptr<Stream> found;
  const CUresult result = FindStream(handle, &found);
  if (result == CUDA_SUCCESS) *stream = CaptureStreamOf(*found);
  return result;
}

uint64_t ThreadNumber() { return ThreadState::Get().id; }
CUstreamCaptureMode& ThreadMode() { return ThreadState::Get().capture_mode; }
std::vector<CUgraphNode>& ThreadNodes() { return ThreadState::Get().capture_nodes; }

}  // namespace

#include "ipc/calls/graph_captures.inc"

}  // namespace softgpu::api
