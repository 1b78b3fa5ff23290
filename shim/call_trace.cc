#include "shim/call_trace.h"

#include <unistd.h>

namespace shim {
namespace {

constexpr std::atomic<uint32_t> kNotTraced{0};
std::atomic<const ipc::SessionFile*> traced_file{nullptr};

// Without a destructor: the program's own destructors may make calls.
struct ThreadTrack {
  uint32_t trace = 0;  // the number of the trace that the track is of
  ipc::TraceWriter writer;
};
thread_local ThreadTrack thread_track;

// A thread that finds no free track writes nothing for as long as the trace lasts.
void ClaimForThread(const ipc::SessionFile& file, uint32_t number) {
  thread_track.trace = number;
  const uint32_t track = ipc::ClaimTrack(file.trace_area(), number);
  thread_track.writer =
      track == ipc::kTraceTracks
          ? ipc::TraceWriter()
          : ipc::TraceWriter(file.trace_area(), track, static_cast<uint32_t>(gettid()));
}

}  // namespace

std::atomic<const std::atomic<uint32_t>*> traced_word{&kNotTraced};

void BeginTracing(const ipc::SessionFile& file) {
  traced_file.store(&file, std::memory_order_release);
  traced_word.store(&ipc::TraceSwitchOf(file.page())->number, std::memory_order_release);
}

void EndTracing() { traced_word.store(&kNotTraced, std::memory_order_relaxed); }

uint32_t TraceInDetail(std::byte** area) {
  const ipc::SessionFile* const file = traced_file.load(std::memory_order_acquire);
  if (file == nullptr) return 0;
  ipc::TraceSwitch* const trace = ipc::TraceSwitchOf(file->page());
  if (trace->details.load(std::memory_order_relaxed) == 0) return 0;
  *area = file->trace_area();
  return ipc::TraceNumber(trace, ipc::MonotonicNs());
}

void AddToTrace(ipc::TraceKind kind, int64_t begin_ns, uint16_t op, uint32_t slot,
                uint64_t amount) {
  const ipc::SessionFile& file = *traced_file.load(std::memory_order_acquire);
  const int64_t now_ns = ipc::MonotonicNs();
  const uint32_t number = ipc::TraceNumber(ipc::TraceSwitchOf(file.page()), now_ns);
  if (number == 0) return;
  if (thread_track.trace != number) ClaimForThread(file, number);
  thread_track.writer.Add({begin_ns, now_ns, kind, op, slot, amount});
}

}  // namespace shim
