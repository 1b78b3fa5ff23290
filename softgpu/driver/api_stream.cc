// Streams: creation, queries, waiting, attributes.
#include <algorithm>
#include <memory>
#include <utility>

#include "softgpu/driver/api.h"
#include "softgpu/driver/capture.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/device.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/event.h"
#include "softgpu/driver/handles.h"
#include "softgpu/driver/stream.h"
#include "softgpu/driver/virtual_device.h"
#include "softgpu/driver/work.h"

namespace softgpu::api {
namespace {

constexpr int kPriorityGreatest = -5, kPriorityLeast = 0;

CUresult Create(CUstream* out, unsigned flags, int priority) {
  std::shared_ptr<Context> context;
  if (out == nullptr || (flags & ~CU_STREAM_NON_BLOCKING) != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  priority = std::clamp(priority, kPriorityGreatest, kPriorityLeast);
  *out = context->CreateStream(flags, priority)->handle();
  return CUDA_SUCCESS;
}

// Looks the stream up and lets `read` answer from it.
template <class Out, class Read>
CUresult Ask(CUstream handle, Out* out, const Read& read) {
  std::shared_ptr<Stream> stream;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindStream(handle, &stream);
  if (result == CUDA_SUCCESS) *out = read(*stream);
  return result;
}

}  // namespace

CUresult cuStreamCreate(CUstream* out, unsigned int flags) { return Create(out, flags, 0); }

CUresult cuStreamCreateWithPriority(CUstream* out, unsigned int flags, int priority) {
  return Create(out, flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream handle) {
  const std::shared_ptr<Stream> stream = Driver::Get().streams.Remove(handle);
  if (stream == nullptr)
    return Fail(CUDA_ERROR_INVALID_HANDLE, "this is no stream that can be destroyed");
  stream->context()->RemoveStream(stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream handle) { return api::cuStreamDestroy_v2(handle); }

CUresult cuStreamGetPriority(CUstream handle, int* priority) {
  return Ask(handle, priority, [](Stream& stream) { return stream.priority(); });
}

CUresult cuStreamGetFlags(CUstream handle, unsigned int* flags) {
  return Ask(handle, flags, [](Stream& stream) { return stream.flags(); });
}

CUresult cuStreamGetId(CUstream handle, unsigned long long* id) {
  return Ask(handle, id, [](Stream& stream) { return stream.id(); });
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice* device) {
  return Ask(handle, device, [](Stream& stream) { return stream.context()->device().ordinal(); });
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext* context) {
  return Ask(handle, context, [](Stream& stream) { return stream.context()->handle(); });
}

CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext* context, CUgreenCtx* green) {
  if (green != nullptr) *green = nullptr;
  return api::cuStreamGetCtx(handle, context);
}

CUresult cuStreamGetGreenCtx(CUstream handle, CUgreenCtx* green) {
  return Ask(handle, green, [](Stream&) { return CUgreenCtx{nullptr}; });
}

CUresult cuStreamQuery(CUstream handle) {
  std::shared_ptr<Stream> stream;
  const CUresult result = FindStream(handle, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (IsCapturing(*stream)) return RefuseWhileCapturing(*stream);
  if (!stream->Idle()) return CUDA_ERROR_NOT_READY;
  if (VirtualDevice* const device = VirtualDevice::Get()) device->ObserveEnd({stream});
  return stream->context()->Fault();
}

CUresult cuStreamSynchronize(CUstream handle) {
  std::shared_ptr<Stream> stream;
  const CUresult result = FindStream(handle, &stream);
  if (result != CUDA_SUCCESS) return result;
  if (IsCapturing(*stream)) return RefuseWhileCapturing(*stream);
  return stream->context()->Synchronize(stream);
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned int flags) {
  std::shared_ptr<Stream> stream;
  std::shared_ptr<Event> event;
  if ((flags & ~CU_EVENT_WAIT_EXTERNAL) != 0) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = FindStream(handle, &stream);
  if (result == CUDA_SUCCESS) result = FindEvent(event_handle, &event);
  if (result != CUDA_SUCCESS) return result;
  if ((flags & CU_EVENT_WAIT_EXTERNAL) != 0 && IsCapturing(*stream)) {
    return AddToCapture(*stream, EventWaitWork{event});
  }
  const std::shared_ptr<Event::Mark> mark = event->mark();
  return mark != nullptr ? WaitForMark(stream, *mark) : CUDA_SUCCESS;
}

CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr address, size_t, unsigned int flags) {
  std::shared_ptr<Stream> stream;
  const CUresult result = FindStream(handle, &stream);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Allocation> found = Driver::Get().memory_map().Find(address);
  if (found == nullptr || found->kind != Allocation::Kind::kManaged) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "this is not managed memory");
  }
  return CUDA_SUCCESS;  // host and devices share it at all times
}

// --- attributes: kept, and without effect but for the priority, which is the stream's

CUresult cuStreamGetAttribute(CUstream handle, CUstreamAttrID id, CUstreamAttrValue* value) {
  std::shared_ptr<Stream> stream;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindStream(handle, &stream);
  return result == CUDA_SUCCESS ? stream->GetAttribute(id, value) : result;
}

CUresult cuStreamSetAttribute(CUstream handle, CUstreamAttrID id, const CUstreamAttrValue* value) {
  std::shared_ptr<Stream> stream;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindStream(handle, &stream);
  return result == CUDA_SUCCESS ? stream->SetAttribute(id, *value) : result;
}

CUresult cuStreamCopyAttributes(CUstream to, CUstream from) {
  std::shared_ptr<Stream> target, source;
  CUresult result = FindStream(to, &target);
  if (result == CUDA_SUCCESS) result = FindStream(from, &source);
  if (result == CUDA_SUCCESS) target->CopyAttributes(*source);
  return result;
}

}  // namespace softgpu::api
