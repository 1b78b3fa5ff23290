#include "shim/graphs/capture.h"

#include <unordered_map>
#include <utility>

#include "base/find.h"
#include "base/mutex.h"

namespace shim::graphs {

std::atomic<int> capturing_streams{0};

namespace {

using Recording = ::graphs::CaptureRecording<GraphUse>;

// What events stand for that were recorded in captures.
class RecordedEvents {
 public:
  static RecordedEvents& Process() {
    static RecordedEvents* const events = new RecordedEvents;
    return *events;
  }

  void Set(CUevent event, Recording recording) EXCLUDES(mutex_) {
    base::MutexLock lock(&mutex_);
    recordings_.insert_or_assign(event, std::move(recording));
  }
  Recording Find(CUevent event) EXCLUDES(mutex_) {
    base::MutexLock lock(&mutex_);
    return base::FindOr(recordings_, event, {});
  }
  void Forget(CUevent event) EXCLUDES(mutex_) {
    base::MutexLock lock(&mutex_);
    recordings_.erase(event);
  }

 private:
  base::Mutex mutex_;
  std::unordered_map<CUevent, Recording> recordings_ GUARDED_BY(mutex_);
};

std::optional<CUresult> ResultIf(const std::optional<Refusal>& refusal) {
  return refusal.has_value() ? std::optional(ResultOf(*refusal)) : std::nullopt;
}

}  // namespace

Captures& AllCaptures() {
  static Captures* const captures = new Captures(&capturing_streams);
  return *captures;
}

// A legacy stream is that of any context of its device, so the device is what groups streams here.
::graphs::CaptureStream CaptureStreamOf(const Stream& stream) {
  const bool blocking = (stream.flags & CU_STREAM_NON_BLOCKING) == 0;
  return {stream.value, static_cast<uint64_t>(stream.device), stream.legacy, blocking};
}

void AbandonCapture(const Stream& stream) {
  if (AnyCapture()) AllCaptures().Abandon(CaptureStreamOf(stream));
}

std::optional<CUresult> CaptureWork(const Stream& stream, Work work) {
  return ResultIf(AllCaptures().Put(CaptureStreamOf(stream), {std::move(work), {}, {}}));
}

std::optional<CUresult> RefuseInCapture(const Stream& stream, bool is_work) {
  return ResultIf(AllCaptures().Refuse(CaptureStreamOf(stream), is_work));
}

std::optional<CUresult> RecordInCapture(const Stream& stream, CUevent event, Event* state,
                                        unsigned flags) {
  const ::graphs::CaptureStream own = CaptureStreamOf(stream);
  if ((flags & CU_EVENT_RECORD_EXTERNAL) != 0 && AllCaptures().Has(own))
    return CaptureWork(stream, EventRecordWork{event});
  Recording recording;
  const std::optional<CUresult> result = ResultIf(AllCaptures().Record(own, &recording));
  if (recording.capture == 0) return result;
  RecordedEvents::Process().Set(event, std::move(recording));
  state->captured.store(true, std::memory_order_release);
  return result;
}

std::optional<CUresult> WaitInCapture(const Stream& stream, CUevent event, const Event& state,
                                      unsigned flags) {
  const ::graphs::CaptureStream own = CaptureStreamOf(stream);
  if ((flags & CU_EVENT_WAIT_EXTERNAL) != 0 && AllCaptures().Has(own))
    return CaptureWork(stream, EventWaitWork{event});
  Recording recording;
  if (state.captured.load(std::memory_order_acquire))
    recording = RecordedEvents::Process().Find(event);
  const bool is_recorded = state.recorded.load(std::memory_order_acquire) != 0;
  return ResultIf(AllCaptures().Wait(own, recording, is_recorded));
}

void ForgetCaptured(CUevent event, Event* state) {
  if (!state->captured.load(std::memory_order_relaxed)) return;
  state->captured.store(false, std::memory_order_relaxed);
  RecordedEvents::Process().Forget(event);
}

}  // namespace shim::graphs
