// Events and names of kernels of a trace as a hostile client may write them. The first byte names
// the track, the rest are the bytes of its events, and of records. Whatever they are, the trace
// must be JSON whose slices nest.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "cli/call_events.h"
#include "cli/call_events_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const uint32_t number = data[0] % ipc::kTraceTracks;
  cli::JobCalls calls;
  calls.job = 1;
  calls.begin_ns = 1000;
  calls.end_ns = 1'000'000'000;
  cli::CallTrack& track = calls.sessions[1].tracks[number];
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  calls.unreadable = cli::DecodeEventsUntrusted(number, bytes, &track.events);
  calls.sessions[1].tracks[ipc::kImageTrack].records_untrusted = bytes;
  cli::NameKernels(&calls);
  cli::Order(&calls);
  int64_t last_ns = 0;
  for (const ipc::TraceEvent& event : track.events) {
    if (event.begin_ns < calls.begin_ns || event.end_ns < event.begin_ns) std::abort();
    if (number != ipc::kDeviceTrack && event.begin_ns < last_ns) std::abort();
    last_ns = event.begin_ns;
  }
  const nlohmann::json json =
      nlohmann::json::parse("[" + cli::CallsJson(calls, calls.begin_ns) + "]", nullptr, false);
  if (!json.is_array() || json.size() < track.events.size()) std::abort();
  return 0;
}
