// Streams, events, marks and host functions.
#include "daemon/worker/session_impl.h"
#include "ipc/futex.h"

namespace worker {

// The stream's name travels in the NewHandle parameter; the codec binds what *stream becomes.
CUresult SessionImpl::StreamCreate(CUstream* stream, unsigned flags, int priority, unsigned slot) {
  StreamTable::Stream* created = nullptr;
  const CUresult result = streams_.Create(slot, flags, priority, device_, &created);
  if (result == CUDA_SUCCESS) *stream = created->driver;
  return result;
}

CUresult SessionImpl::StreamDestroy(CUstream stream) {
  call_stream_ = work_stream_ = nullptr;
  return streams_.Destroy(stream);
}

CUresult SessionImpl::PlaceMark(StreamTable::Stream* stream, const ipc::Mark& mark) {
  if (mark.sequence == 0) return CUDA_SUCCESS;
  if (mark.wake != 0 && driver_.cuStreamQuery(stream->driver) == CUDA_SUCCESS) {
    ReachMark(stream, mark);
    return CUDA_SUCCESS;
  }
  std::atomic<uint64_t>* const word = &file_.completions()->completed[stream->slot];
  const CUresult result =
      driver_.cuStreamWriteValue64_v2(stream->driver, reinterpret_cast<CUdeviceptr>(word),
                                      mark.sequence, CU_STREAM_WRITE_VALUE_DEFAULT);
  if (result != CUDA_SUCCESS || mark.wake == 0) return result;
  return RingAfter(stream);
}

void SessionImpl::ReachMark(StreamTable::Stream* stream, const ipc::Mark& mark) {
  if (mark.sequence == 0) return;
  file_.completions()->completed[stream->slot].store(mark.sequence, std::memory_order_seq_cst);
  if (mark.wake != 0) WakeClient();
}

// A callback is the one documented notice that comes also when the device has failed.
CUresult SessionImpl::RingAfter(StreamTable::Stream* stream) {
  client_sleeps_ = true;
  rung_after_ = stream;
  return CallBackAfter<&SessionImpl::WakeClientAfterWork>(stream->driver);
}

void SessionImpl::WakeClientAfterWork() {
  GiveWay(false);
  WakeClient();
}

void SessionImpl::WakeClient() {
  if (ring_waits_.exchange(false)) {
    ring_owed_.store(true);
  } else {
    RingClient();
  }
}

void SessionImpl::RingClient() {
  std::atomic<uint32_t>* const doorbell = &file_.page()->client_doorbell;
  doorbell->fetch_add(1, std::memory_order_seq_cst);
  ipc::FutexWakeAll(doorbell);
}

CUresult SessionImpl::StreamMark(CUstream, ipc::Mark mark) { return PlaceMark(CallStream(), mark); }

CUresult SessionImpl::EventRecord(CUevent event, CUstream stream, ipc::Mark mark) {
  const CUresult result = driver_.cuEventRecord(event, stream);
  if (result != CUDA_SUCCESS) return result;
  event_records_[event] = {CallStream()->driver, call_event_, device_, false};
  unsaved_records_ = true;
  event_times_.OnRecord(event);
  return PlaceMark(CallStream(), mark);
}

CUresult SessionImpl::EventWake(CUevent event) {
  const auto it = event_records_.find(event);
  StreamTable::Stream* stream = nullptr;
  if (it != event_records_.end()) {
    stream = streams_.OfDriver(it->second.stream);
    if (stream == nullptr) stream = streams_.EndingOfDriver(it->second.stream);
  }
  if (stream != nullptr) return RingAfter(stream);
  // Never recorded, or its stream's work is done: there is nothing to wait for.
  WakeClient();
  return CUDA_SUCCESS;
}

CUresult SessionImpl::HostCall(CUstream stream, uint64_t ticket, ipc::Mark mark) {
  if (ticket > ipc::kEveryTicket) return CUDA_ERROR_INVALID_VALUE;
  StreamTable::Stream* const held = CallStream();
  const CUresult result = PlaceMark(held, mark);
  if (result != CUDA_SUCCESS) return result;
  std::atomic<uint64_t>* const word = &file_.completions()->acknowledged[held->slot];
  return driver_.cuStreamWaitValue64_v2(stream, reinterpret_cast<CUdeviceptr>(word), ticket,
                                        CU_STREAM_WAIT_VALUE_GEQ);
}

}  // namespace worker
