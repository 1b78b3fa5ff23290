#include "daemon/worker/call_handlers/stream_handler.h"

#include <map>
#include <utility>
#include <vector>

namespace worker {

StreamHandler::StreamHandler(Holdings* held, CallContext* call, ClientBell* bell,
                             ipc::SessionFile* file, int swap_file)
    : driver_(*held->environment.driver),
      held_(*held),
      call_(*call),
      bell_(*bell),
      file_(*file),
      times_(held->environment, swap_file) {}

// The stream's name travels in the NewHandle parameter; the codec binds what *stream becomes.
CUresult StreamHandler::StreamCreate(CUstream* stream, unsigned flags, int priority,
                                     unsigned slot) {
  StreamTable::Stream* created = nullptr;
  const CUresult result = held_.streams.Create(slot, flags, priority, call_.device, &created);
  if (result == CUDA_SUCCESS) *stream = created->driver;
  return result;
}

CUresult StreamHandler::StreamDestroy(CUstream stream) {
  call_.stream = nullptr;
  last_work_ = nullptr;
  return held_.streams.Destroy(stream);
}

CUresult StreamHandler::StreamMark(CUstream, ipc::Mark mark) {
  return bell_.PlaceMark(call_.stream, mark);
}

CUresult StreamHandler::StreamsJoin() {
  held_.streams.Join();
  return CUDA_SUCCESS;
}

CUresult StreamHandler::EventRecord(CUevent event, CUstream stream, ipc::Mark mark) {
  const CUresult result = driver_.cuEventRecord(event, stream);
  if (result != CUDA_SUCCESS) return result;
  records_[event] = {call_.stream->driver, call_.event, call_.device, false};
  unsaved_ = true;
  times_.OnRecord(event);
  return bell_.PlaceMark(call_.stream, mark);
}

CUresult StreamHandler::EventWake(CUevent event) {
  const auto it = records_.find(event);
  StreamTable::Stream* stream = nullptr;
  if (it != records_.end()) {
    stream = held_.streams.OfDriver(it->second.stream);
    if (stream == nullptr) stream = held_.streams.EndingOfDriver(it->second.stream);
  }
  if (stream != nullptr) return bell_.RingAfter(stream);
  // Never recorded, or its stream's work is done: there is nothing to wait for.
  bell_.Ring();
  return CUDA_SUCCESS;
}

CUresult StreamHandler::HostCall(CUstream stream, uint64_t ticket, ipc::Mark mark) {
  if (ticket > ipc::kEveryTicket) return CUDA_ERROR_INVALID_VALUE;
  StreamTable::Stream* const held = call_.stream;
  const CUresult result = bell_.PlaceMark(held, mark);
  if (result != CUDA_SUCCESS) return result;
  std::atomic<uint64_t>* const word = &file_.completions()->acknowledged[held->slot];
  return driver_.cuStreamWaitValue64_v2(stream, reinterpret_cast<CUdeviceptr>(word), ticket,
                                        CU_STREAM_WAIT_VALUE_GEQ);
}

void StreamHandler::OnReleaseEvent(ipc::HandleId id, CUevent event) {
  records_.erase(event);
  times_.OnRelease(id, event);
}

void StreamHandler::SaveTimes() {
  if (!std::exchange(unsaved_, false)) return;
  std::map<int, std::vector<EventTimes::Recorded>> unsaved;
  for (std::pair<const CUevent, LastRecord>& entry : records_) {
    LastRecord& record = entry.second;
    if (!std::exchange(record.saved, true))
      unsaved[record.device].push_back({record.id, entry.first});
  }
  for (const std::pair<const int, std::vector<EventTimes::Recorded>>& entry : unsaved)
    times_.Save(entry.first, entry.second);
}

void StreamHandler::DestroyEvents(HandleMap* handles) {
  handles->Drain(ipc::HandleKind::kEvent,
                 [this](void* handle) { driver_.cuEventDestroy_v2(static_cast<CUevent>(handle)); });
  records_.clear();
  times_.Clear(false);
  last_work_ = nullptr;
}

}  // namespace worker
