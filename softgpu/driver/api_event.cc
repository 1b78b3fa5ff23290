// Events.
#include <memory>

#include "softgpu/driver/api.h"
#include "softgpu/driver/capture.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/event.h"
#include "softgpu/driver/handles.h"
#include "softgpu/driver/stream.h"
#include "softgpu/driver/work.h"

namespace softgpu::api {
namespace {

bool IsCaptured(const std::shared_ptr<Event::Mark>& mark) {
  return mark != nullptr && mark->captured.capture != 0;
}

}  // namespace

CUresult cuEventCreate(CUevent* out, unsigned int flags) {
  std::shared_ptr<Context> context;
  const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if (out == nullptr || (flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_EVENT_INTERPROCESS) != 0) {
    return Fail(CUDA_ERROR_NOT_SUPPORTED, "events can't be shared between processes");
  }
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Event> event = std::make_shared<Event>(context->id(), flags);
  Driver::Get().events.Add(event);
  *out = event->handle();
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent handle) {
  if (Driver::Get().events.Remove(handle) != nullptr) return CUDA_SUCCESS;
  return Fail(CUDA_ERROR_INVALID_HANDLE, "this is no event");
}

CUresult cuEventDestroy(CUevent handle) { return api::cuEventDestroy_v2(handle); }

CUresult cuEventRecordWithFlags(CUevent handle, CUstream stream_handle, unsigned int flags) {
  std::shared_ptr<Event> event;
  std::shared_ptr<Stream> stream;
  if ((flags & ~CU_EVENT_RECORD_EXTERNAL) != 0) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = FindEvent(handle, &event);
  if (result == CUDA_SUCCESS) result = FindStream(stream_handle, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (event->context_id() != stream->context()->id()) {
    return Fail(CUDA_ERROR_INVALID_HANDLE, "the event and the stream belong to different contexts");
  }
  if ((flags & CU_EVENT_RECORD_EXTERNAL) != 0 && IsCapturing(*stream))
    return AddToCapture(*stream, EventRecordWork{event});
  if (const std::optional<CUresult> captured = RecordInCapture(*stream, *event)) return *captured;
  event->Record(stream);
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent handle, CUstream stream) {
  return api::cuEventRecordWithFlags(handle, stream, CU_EVENT_RECORD_DEFAULT);
}

CUresult cuEventQuery(CUevent handle) {
  std::shared_ptr<Event> event;
  const CUresult result = FindEvent(handle, &event);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Event::Mark> mark = event->mark();
  if (IsCaptured(mark)) return CUDA_ERROR_CAPTURED_EVENT;
  if (mark == nullptr) return CUDA_SUCCESS;
  if (!mark->Done()) return CUDA_ERROR_NOT_READY;
  mark->Observe();
  return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent handle) {
  std::shared_ptr<Event> event;
  const CUresult result = FindEvent(handle, &event);
  if (result != CUDA_SUCCESS) return result;
  return IsCaptured(event->mark()) ? CUDA_ERROR_CAPTURED_EVENT : event->Synchronize();
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start_handle, CUevent end_handle) {
  std::shared_ptr<Event> start, end;
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = FindEvent(start_handle, &start);
  if (result == CUDA_SUCCESS) result = FindEvent(end_handle, &end);
  return result == CUDA_SUCCESS ? Event::Elapsed(*start, *end, milliseconds) : result;
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return api::cuEventElapsedTime_v2(milliseconds, start, end);
}

}  // namespace softgpu::api
