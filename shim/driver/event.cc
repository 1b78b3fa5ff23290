// Events: a record is a mark on its stream, so asking about an event reads a completion word.
#include <tuple>

#include "shim/client.h"
#include "shim/driver/local.h"
#include "shim/graphs/capture.h"
#include "shim/send.h"
#include "shim/state.h"
#include "shim/streams.h"
#include "shim/sync.h"

namespace local {
namespace {

using shim::Context;
using shim::Event;
using shim::State;
using shim::Stream;
using shim::Streams;

constexpr unsigned kSequenceBits = 48;

uint64_t Bits(CUevent event) { return reinterpret_cast<uint64_t>(event); }

CUresult Find(CUevent program, Event** event) {
  if (const CUresult result = shim::Client::Process().Ready(); result != CUDA_SUCCESS)
    return result;
  *event = State::Process().events.Find(Bits(program));
  return *event != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  Context* context = nullptr;
  uint64_t context_value = 0;
  if (const CUresult result = State::Process().Current(&context, &context_value);
      result != CUDA_SUCCESS) {
    return result;
  }
  if (event == nullptr ||
      (flags & ~(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if ((flags & CU_EVENT_INTERPROCESS) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  uint64_t value = 0;
  Event* const made = State::Process().events.Create(&value);
  if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  made->flags = flags;
  made->context = context_value;
  made->wire = context->wire;
  made->device = context->device;
  const shim::GivenName name(value);
  const CUresult result = shim::Post<ipc::Op::cuEventCreate>(context->wire, event, flags);
  if (result != CUDA_SUCCESS) State::Process().events.Destroy(value);
  return result;
}

CUresult cuEventDestroy_v2(CUevent event) {
  Event* found = nullptr;
  if (const CUresult result = Find(event, &found); result != CUDA_SUCCESS) return result;
  shim::graphs::ForgetCaptured(event, found);
  return shim::Post<ipc::Op::cuEventDestroy_v2>(found->wire, event);
}
CUresult cuEventDestroy(CUevent event) { return local::cuEventDestroy_v2(event); }

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  Event* found = nullptr;
  Stream* on = nullptr;
  if (const CUresult result = Streams::Process().UseCurrent(stream, &on); result != CUDA_SUCCESS)
    return result;
  if (const CUresult result = Find(event, &found); result != CUDA_SUCCESS) return result;
  if ((flags & ~CU_EVENT_RECORD_EXTERNAL) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (found->device != on->device) return CUDA_ERROR_INVALID_HANDLE;
  if (shim::graphs::AnyCapture()) {
    if (const auto captured = shim::graphs::RecordInCapture(*on, event, found, flags))
      return *captured;
  }
  shim::graphs::ForgetCaptured(event, found);
  CUstream program = reinterpret_cast<CUstream>(on->value);
  ipc::Mark mark;
  const CUresult result = shim::PostWith<ipc::Op::EventRecord>(
      on->wire, [&] { mark = Streams::Process().NextMark(*on, false); }, event, program, mark);
  if (result != CUDA_SUCCESS) return result;
  found->recorded.store(uint64_t{on->slot} << kSequenceBits | mark.sequence,
                        std::memory_order_release);
  return shim::Throttle(*on);
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  return local::cuEventRecordWithFlags(event, stream, 0);
}

CUresult cuEventQuery(CUevent event) {
  Event* found = nullptr;
  if (const CUresult result = Find(event, &found); result != CUDA_SUCCESS) return result;
  if (found->captured.load(std::memory_order_acquire)) return CUDA_ERROR_CAPTURED_EVENT;
  return shim::QueryEvent(Bits(event), *found);
}

CUresult cuEventSynchronize(CUevent event) {
  Event* found = nullptr;
  if (const CUresult result = Find(event, &found); result != CUDA_SUCCESS) return result;
  if (found->captured.load(std::memory_order_acquire)) return CUDA_ERROR_CAPTURED_EVENT;
  return shim::SynchronizeEvent(Bits(event), *found);
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  Event* first = nullptr;
  Event* last = nullptr;
  if (const CUresult result = Find(start, &first); result != CUDA_SUCCESS) return result;
  if (const CUresult result = Find(end, &last); result != CUDA_SUCCESS) return result;
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (((first->flags | last->flags) & CU_EVENT_DISABLE_TIMING) != 0 || first->recorded == 0 ||
      last->recorded == 0) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (const CUresult result = shim::QueryEvent(Bits(start), *first); result != CUDA_SUCCESS)
    return result;
  if (const CUresult result = shim::QueryEvent(Bits(end), *last); result != CUDA_SUCCESS)
    return result;
  return shim::Call<ipc::Op::cuEventElapsedTime_v2>(last->wire, milliseconds, start, end);
}
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return local::cuEventElapsedTime_v2(milliseconds, start, end);
}

// --- all streams of a context --------------------------------------------------------------------
//
// A join orders what is sent later, on any stream, behind all that was sent so far. So the legacy
// stream stands for all streams between a join and what is sent next.

namespace {

// The context is the thread's current one while the object lives.
class InContext {
 public:
  explicit InContext(CUcontext context)
      : result_(shim::graphs::AnyCapture() ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                                           : local::cuCtxPushCurrent_v2(context)) {}
  ~InContext() {
    if (result_ == CUDA_SUCCESS) local::cuCtxPopCurrent_v2(nullptr);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

  CUresult result() const { return result_; }

 private:
  const CUresult result_;
};

CUresult JoinStreams() {
  Context* context = nullptr;
  const CUresult result = State::Process().Current(&context);
  return result == CUDA_SUCCESS ? Streams::SendJoin(context->wire) : result;
}

}  // namespace

CUresult cuCtxRecordEvent(CUcontext context, CUevent event) {
  const InContext in(context);
  if (in.result() != CUDA_SUCCESS) return in.result();
  if (const CUresult result = JoinStreams(); result != CUDA_SUCCESS) return result;
  return local::cuEventRecordWithFlags(event, CU_STREAM_LEGACY, 0);
}

CUresult cuCtxWaitEvent(CUcontext context, CUevent event) {
  const InContext in(context);
  if (in.result() != CUDA_SUCCESS) return in.result();
  Event* found = nullptr;
  if (const CUresult result = Find(event, &found); result != CUDA_SUCCESS) return result;
  Stream* legacy = nullptr;
  CUresult result = Streams::Process().UseCurrent(CU_STREAM_LEGACY, &legacy);
  if (result != CUDA_SUCCESS) return result;
  result = shim::Post<ipc::Op::cuStreamWaitEvent>(
      legacy->wire, reinterpret_cast<CUstream>(legacy->value), event, 0u);
  return result == CUDA_SUCCESS ? JoinStreams() : result;
}

}  // namespace local
