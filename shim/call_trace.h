// The client's part of `laneway trace JOB --calls` (ipc/call_trace.h): each thread writes its calls
// and its waits into a track of its own.
//
// A call asks one word whether the session is traced; all else happens only while it is. A child
// that was forked from a client is never traced: the tracks are its parent's.
// Thread safety: all functions from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ipc/call_trace.h"
#include "ipc/calls.h"
#include "ipc/futex.h"
#include "ipc/trace_switch.h"

namespace shim {

// TraceSwitch::number of the process's session; before there is a session, a zero.
extern std::atomic<const std::atomic<uint32_t>*> traced_word;

inline bool IsTraced() {
  return traced_word.load(std::memory_order_relaxed)->load(std::memory_order_relaxed) != 0;
}

// `file` outlives the process's calls.
void BeginTracing(const ipc::SessionFile& file);
// In a forked child.
void EndTracing();

// The number of the trace, if it is one in detail, and where its tracks are; 0: none. Asks the
// clock: for the calls of a session that is traced.
uint32_t TraceInDetail(std::byte** area);
inline bool IsTracedInDetail() {
  std::byte* area = nullptr;
  return IsTraced() && TraceInDetail(&area) != 0;
}

// Writes an event that ends now.
void AddToTrace(ipc::TraceKind kind, int64_t begin_ns, uint16_t op, uint32_t slot, uint64_t amount);

// An event of the calling thread, which begins and ends with this object. Without a trace at its
// beginning the thread writes nothing.
class TracedSpan {
 public:
  explicit TracedSpan(ipc::TraceKind kind, uint32_t slot = ipc::kNoTraceSlot)
      : begin_ns_(IsTraced() ? ipc::MonotonicNs() : 0), kind_(kind), slot_(slot) {}
  explicit TracedSpan(ipc::Op op) : TracedSpan(ipc::TraceKind::kCall) {
    op_ = static_cast<uint16_t>(op);
  }
  ~TracedSpan() {
    if (begin_ns_ != 0) [[unlikely]]
      AddToTrace(kind_, begin_ns_, op_, slot_, amount_);
  }
  TracedSpan(const TracedSpan&) = delete;

  void SetAmount(uint64_t amount) { amount_ = amount; }

 private:
  const int64_t begin_ns_;  // 0: not traced
  const ipc::TraceKind kind_;
  uint16_t op_ = 0;
  const uint32_t slot_;
  uint64_t amount_ = 0;
};

// The exported entry of a call whose body is `fn`: the same but for the event.
template <ipc::Op op, auto fn, class Signature>
struct Traced;
template <ipc::Op op, auto fn, class R, class... A>
struct Traced<op, fn, R(A...)> {
  static R Call(A... a) {
    if (!IsTraced()) [[likely]]
      return fn(a...);
    return CallTraced(a...);
  }
  [[gnu::noinline, gnu::cold]] static R CallTraced(A... a) {
    const TracedSpan span(op);
    return fn(a...);
  }
};

}  // namespace shim
