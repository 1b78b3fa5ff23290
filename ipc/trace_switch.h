// The switch of a session's call trace (ipc/call_trace.h): three words near the end of the
// session's page, in a line of their own, because every call of the client reads the first one.
//
// lanewayd switches a trace on and off. Whoever finds the time of the trace over ends it as well.
// The client may write anything here: a lie slows down its own session.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ipc/client_words.h"
#include "ipc/session_file.h"

namespace ipc {

struct alignas(64) TraceSwitch {
  std::atomic<uint32_t> number;   // of the trace; 0: the session is not traced
  std::atomic<uint32_t> details;  // 1: the trace has records of work (ipc/work_records.h)
  std::atomic<int64_t> until_ns;  // CLOCK_MONOTONIC; lanewayd puts it off while the command asks
};

inline constexpr size_t kTraceSwitchOffset =
    (kPageBytes - sizeof(ClientWords)) / 64 * 64 - sizeof(TraceSwitch);
static_assert(sizeof(SessionPage) <= kTraceSwitchOffset);

inline TraceSwitch* TraceSwitchOf(SessionPage* page) {
  return reinterpret_cast<TraceSwitch*>(reinterpret_cast<std::byte*>(page) + kTraceSwitchOffset);
}

// The trace that events are written for now; 0: none.
inline uint32_t TraceNumber(TraceSwitch* trace, int64_t now_ns) {
  const uint32_t number = trace->number.load(std::memory_order_relaxed);
  if (number == 0 || now_ns <= trace->until_ns.load(std::memory_order_relaxed)) return number;
  trace->number.store(0, std::memory_order_relaxed);
  return 0;
}

}  // namespace ipc
