#include "daemon/worker/client_bell.h"

#include "ipc/futex.h"

namespace worker {

ClientBell::ClientBell(const Environment& environment, ipc::SessionFile* file,
                       DeviceCallbacks* callbacks, ThreadCourtesy* courtesy)
    : driver_(*environment.driver),
      file_(*file),
      callbacks_(*callbacks),
      ring_after_work_(callbacks, [this, courtesy] {
        courtesy->GiveWay(false);
        Ring();
      }) {}

CUresult ClientBell::PlaceMark(StreamTable::Stream* stream, const ipc::Mark& mark) {
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

void ClientBell::ReachMark(StreamTable::Stream* stream, const ipc::Mark& mark) {
  if (mark.sequence == 0) return;
  file_.completions()->completed[stream->slot].store(mark.sequence, std::memory_order_seq_cst);
  if (mark.wake != 0) Ring();
}

CUresult ClientBell::RingAfter(StreamTable::Stream* stream) {
  client_sleeps_ = true;
  rung_after_ = stream;
  return callbacks_.After(stream->driver, &ring_after_work_);
}

void ClientBell::Ring() {
  if (waits_.exchange(false)) {
    owed_.store(true);
  } else {
    RingNow();
  }
}

void ClientBell::RingNow() {
  std::atomic<uint32_t>* const doorbell = &file_.page()->client_doorbell;
  doorbell->fetch_add(1, std::memory_order_seq_cst);
  ipc::FutexWakeAll(doorbell);
}

void ClientBell::BeginHandOver(const std::vector<StreamTable::Stream*>& busy) {
  waits_.store(client_sleeps_ && busy.size() == 1 && busy.front() == rung_after_);
}

void ClientBell::EndHandOver() {
  waits_.store(false);
  if (owed_.exchange(false)) RingNow();
}

}  // namespace worker
