#include "softgpu/driver/capture.h"

#include <utility>

#include "softgpu/driver/context.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/stream.h"

namespace softgpu {
namespace {

std::atomic<int> capturing_streams{0};

bool AnyCapture() { return capturing_streams.load(std::memory_order_relaxed) != 0; }

std::optional<CUresult> ResultOf(const std::optional<graphs::Refusal>& refusal) {
  return refusal.has_value() ? std::optional(softgpu::ResultOf(*refusal)) : std::nullopt;
}

}  // namespace

Captures& AllCaptures() {
  static Captures* const captures = new Captures(&capturing_streams);
  return *captures;
}

graphs::CaptureStream CaptureStreamOf(Stream& stream) {
  Context& context = *stream.context();
  return {stream.id(), context.id(), context.IsLegacy(stream), stream.blocking()};
}

bool IsCapturing(Stream& stream) {
  return AnyCapture() && AllCaptures().Has(CaptureStreamOf(stream));
}

void AbandonCapture(const Stream& stream) {
  if (AnyCapture()) AllCaptures().Abandon({stream.id(), 0, false, false});
}

CUresult AddToCapture(Stream& stream, Work work) {
  const std::optional<CUresult> result =
      ResultOf(AllCaptures().Put(CaptureStreamOf(stream), {std::move(work), {}, {}}));
  return result.value_or(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);  // another thread has ended it
}

CUresult RefuseWhileCapturing(Stream& stream) {
  AllCaptures().Invalidate(CaptureStreamOf(stream));
  return ResultOf(graphs::Refusal::kNotCapturable);
}

CUresult CheckLegacyCapture(Stream& stream) {
  if (!AnyCapture() || !AllCaptures().WouldWait(CaptureStreamOf(stream))) return CUDA_SUCCESS;
  return ResultOf(graphs::Refusal::kImplicit);
}

CUresult SubmitChecked(const std::shared_ptr<Stream>& stream,
                       std::unique_ptr<Operation> operation) {
  const CUresult result = CheckLegacyCapture(*stream);
  if (result == CUDA_SUCCESS) stream->context()->Submit(stream, std::move(operation));
  return result;
}

std::optional<CUresult> RecordInCapture(Stream& stream, Event& event) {
  if (!AnyCapture()) return std::nullopt;
  const std::shared_ptr<Event::Mark> mark = std::make_shared<Event::Mark>();
  const std::optional<CUresult> result =
      ResultOf(AllCaptures().Record(CaptureStreamOf(stream), &mark->captured));
  if (mark->captured.capture != 0) event.SetMark(mark);
  return result;
}

std::optional<CUresult> WaitInCapture(Stream& stream, const Event::Mark& mark) {
  if (!AnyCapture() && mark.captured.capture == 0) return std::nullopt;
  return ResultOf(AllCaptures().Wait(CaptureStreamOf(stream), mark.captured, true));
}

}  // namespace softgpu
