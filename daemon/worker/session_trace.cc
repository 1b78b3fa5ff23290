#include "daemon/worker/session_trace.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "ipc/futex.h"

namespace worker {

bool SessionTrace::Open(int64_t now_ns) {
  const uint32_t number = ipc::TraceNumber(&switch_, now_ns);
  if (number == 0) {
    device_.Drop();
    return false;
  }
  if (number == std::exchange(number_, number)) return true;
  const uint32_t thread = static_cast<uint32_t>(gettid());
  served_ = ipc::TraceWriter(file_.trace_area(), ipc::kWorkerTrack, thread);
  done_ = ipc::TraceWriter(file_.trace_area(), ipc::kDeviceTrack, thread);
  const ipc::TraceWriter records(file_.trace_area(), ipc::kImageTrack, thread);
  kernels_.Begin(records);
  images_.Begin(records);
  return true;
}

void SessionTrace::Begin(bool is_work) {
  const int64_t now_ns = ipc::MonotonicNs();
  if (!Open(now_ns)) return;
  begin_ns_ = now_ns;
  launches_ = 0;
  failed_ = false;
  slot_ = ipc::kNoTraceSlot;
  watches = is_work;
}

void SessionTrace::OnUse(const StreamTable::Stream& stream) {
  slot_ = stream.slot;
  device_.Begin(stream.driver, stream.device);
}

uint32_t SessionTrace::KernelOf(const ipc::MessageHeader& header, const CallContext& call) {
  if (header.op != static_cast<uint16_t>(ipc::Op::Launch) || launches_ != 0) return 0;
  if (switch_.details.load(std::memory_order_relaxed) != 0) return 0;  // its record names it
  return kernels_.NumberOf(call.function);
}

void SessionTrace::End(const ipc::MessageHeader& header, const CallContext& call) {
  const int64_t begin_ns = std::exchange(begin_ns_, 0);
  if (call.stream != nullptr) slot_ = call.stream->slot;
  const uint32_t kernel = KernelOf(header, call);
  if (std::exchange(watches, false) && !failed_) {
    const uint64_t amount =
        ipc::AmountOf({.record = header.record, .launches = launches_, .kernel = kernel});
    if (!device_.End(header.op, slot_, amount) && slot_ != ipc::kNoTraceSlot) done_.CountLost();
  } else {
    device_.Forget();
  }
  const ipc::TraceKind kind = launches_ == 0 ? ipc::TraceKind::kServe : ipc::TraceKind::kReplay;
  const uint64_t amount = launches_ == 0 ? kernel : launches_;
  served_.Add({begin_ns, ipc::MonotonicNs(), kind, header.op, slot_, amount});
  Collect();
}

void SessionTrace::Collect() {
  if (!Open(ipc::MonotonicNs())) return;
  device_.Collect([this](const ipc::TraceEvent& event) { done_.Add(event); });
  if (switch_.details.load(std::memory_order_relaxed) != 0) images_.Tell();
}

void SessionTrace::OnWaited(ipc::WaitState reason, int64_t begin_us) {
  if (switch_.number.load(std::memory_order_relaxed) == 0) return;
  const int64_t now_ns = ipc::MonotonicNs();
  if (!Open(now_ns)) return;
  // Not before what the wait is a part of: a whole microsecond may begin earlier.
  const int64_t begin_ns = std::min(now_ns, (begin_us + 1) * 1000);
  served_.Add({begin_ns, now_ns, ipc::TraceKind::kPark, 0, ipc::kNoTraceSlot,
               static_cast<uint64_t>(reason)});
}

}  // namespace worker
