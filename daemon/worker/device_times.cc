#include "daemon/worker/device_times.h"

#include <utility>

#include "ipc/futex.h"

namespace worker {

CUevent DeviceTimes::Take() {
  if (!spare_.empty()) {
    const CUevent event = spare_.back();
    spare_.pop_back();
    return event;
  }
  CUevent event = nullptr;
  return driver_.cuEventCreate(&event, CU_EVENT_DEFAULT) == CUDA_SUCCESS ? event : nullptr;
}

void DeviceTimes::Give(const Piece& piece) {
  Give(piece.begin);
  Give(piece.end);
}

void DeviceTimes::Begin(CUstream stream, int device) {
  Forget();
  if (pieces_.size() >= kOpenMax || !FindBase(device)) return;
  const CUevent event = Take();
  if (event == nullptr) return;
  if (driver_.cuEventRecord(event, stream) != CUDA_SUCCESS) return Give(event);
  begun_ = {event, stream, device};
}

bool DeviceTimes::End(uint16_t op, uint32_t slot, uint64_t amount) {
  const Begun begun = std::exchange(begun_, {});
  if (begun.event == nullptr) return false;
  const CUevent end = Take();
  if (end == nullptr || driver_.cuEventRecord(end, begun.stream) != CUDA_SUCCESS) {
    Give(begun.event);
    if (end != nullptr) Give(end);
    return false;
  }
  ipc::TraceEvent told;
  told.kind = ipc::TraceKind::kDevice;
  told.op = op;
  told.slot = slot;
  told.amount = amount;
  pieces_.push_back({begun.event, end, begun.device, told});
  return true;
}

void DeviceTimes::Forget() {
  if (begun_.event != nullptr) Give(begun_.event);
  begun_ = {};
}

void DeviceTimes::Collect(const std::function<void(const ipc::TraceEvent&)>& tell) {
  while (!pieces_.empty()) {
    Piece& piece = pieces_.front();
    const CUresult done = driver_.cuEventQuery(piece.end);
    if (done == CUDA_ERROR_NOT_READY) return;
    const Base& base = bases_[piece.device];
    if (done == CUDA_SUCCESS && TimeOf(base, piece.begin, &piece.told.begin_ns) &&
        TimeOf(base, piece.end, &piece.told.end_ns))
      tell(piece.told);
    Give(piece);
    pieces_.pop_front();
  }
}

void DeviceTimes::Drop() {
  for (const Piece& piece : pieces_) Give(piece);
  pieces_.clear();
  Forget();
}

void DeviceTimes::Clear() {
  Drop();
  for (const CUevent event : std::exchange(spare_, {})) driver_.cuEventDestroy_v2(event);
  for (const std::pair<const int, Base>& entry : std::exchange(bases_, {})) {
    if (entry.second.event != nullptr) driver_.cuEventDestroy_v2(entry.second.event);
    if (entry.second.stream != nullptr) driver_.cuStreamDestroy_v2(entry.second.stream);
  }
}

// --- the device's clock --------------------------------------------------------------------------

// A base is replaced only while nothing is open that is timed by it.
bool DeviceTimes::FindBase(int device) {
  Base& base = bases_[device];
  const int64_t now_ns = ipc::MonotonicNs();
  if (base.host_ns != 0 && (now_ns - base.host_ns <= kBaseLifeNs || open())) return true;
  // A device that is too busy for a base must not hold the session up at each message.
  if (base.tried_ns != 0 && now_ns - base.tried_ns <= kBaseLifeNs) return false;
  base.tried_ns = now_ns;
  return MakeBase(&base);
}

bool DeviceTimes::MakeBase(Base* base) {
  base->host_ns = 0;
  if (base->stream == nullptr &&
      driver_.cuStreamCreate(&base->stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
    return false;
  if (base->event == nullptr &&
      driver_.cuEventCreate(&base->event, CU_EVENT_DEFAULT) != CUDA_SUCCESS)
    return false;
  const int64_t before_ns = ipc::MonotonicNs();
  if (driver_.cuEventRecord(base->event, base->stream) != CUDA_SUCCESS) return false;
  while (driver_.cuEventQuery(base->event) == CUDA_ERROR_NOT_READY) {
    if (ipc::MonotonicNs() - before_ns > kBaseNs) return false;
    ipc::CpuRelax();
  }
  base->host_ns = before_ns + (ipc::MonotonicNs() - before_ns) / 2;
  return true;
}

bool DeviceTimes::TimeOf(const Base& base, CUevent event, int64_t* ns) const {
  float ms = 0;
  if (driver_.cuEventElapsedTime_v2(&ms, base.event, event) != CUDA_SUCCESS) return false;
  *ns = base.host_ns + static_cast<int64_t>(double{ms} * 1e6);
  return true;
}

}  // namespace worker
