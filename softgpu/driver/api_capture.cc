// Stream capture, as far as a driver that captures nothing must answer.
#include "softgpu/driver/api.h"
#include "softgpu/driver/handles.h"
#include "softgpu/driver/stream.h"
#include "softgpu/driver/thread_state.h"

namespace softgpu::api {
namespace {

CUresult NotCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  std::shared_ptr<Stream> stream;
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return FindStream(handle, &stream);
}

}  // namespace

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (mode == nullptr || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, ThreadState::Get().capture_mode);
  return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return NotCapturing(stream, status);
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t*) {
  return NotCapturing(stream, status);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t*,
                                   CUgraph*, const CUgraphNode**, size_t*) {
  return NotCapturing(stream, status);
}

CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t*,
                                   CUgraph*, const CUgraphNode**, const CUgraphEdgeData**, size_t*) {
  return NotCapturing(stream, status);
}

}  // namespace softgpu::api
