#include "cli/call_events_json.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/find.h"
#include "cli/table.h"
#include "ipc/calls.h"
#include "ipc/calls/limits.h"
#include "ipc/session_file.h"
#include "replay/kernel_report.h"

namespace cli {
namespace {

using Json = nlohmann::json;
using ipc::TraceEvent;
using ipc::TraceKind;

const char* WaitName(uint64_t state_untrusted) {
  switch (static_cast<ipc::WaitState>(state_untrusted)) {
    case ipc::WaitState::kTurn:
      return "waits for its turn";
    case ipc::WaitState::kMemory:
      return "waits for memory";
    case ipc::WaitState::kLane:
      return "waits for its lane";
    case ipc::WaitState::kPaused:
      return "waits until it is resumed";
    case ipc::WaitState::kSwapped:
      return "waits for its memory";
    case ipc::WaitState::kNothing:
      break;
  }
  return "waits";
}

std::string CallName(const TraceEvent& event) {
  const std::optional<ipc::Op> op = ipc::OpFromUntrusted(event.op);
  return op.has_value() ? std::string(ipc::RowOf(*op).name) : "?";
}

// The kernel's name as people read it. None: the trace has no name with this number.
std::optional<std::string> KernelName(const SessionCalls& session, uint64_t number) {
  if (number == 0 || number > UINT32_MAX) return std::nullopt;
  const std::string* const name =
      base::FindOrNull(session.kernels_untrusted, static_cast<uint32_t>(number));
  if (name == nullptr) return std::nullopt;
  return Printable(replay::ReadableKernelName(*name));
}

std::string DeviceName(const SessionCalls& session, const TraceEvent& event) {
  const ipc::DeviceWork work = ipc::DeviceWorkIn(event);
  if (work.launches != 0) return absl::StrCat(work.launches, " launches");
  return KernelName(session, work.kernel).value_or(CallName(event));
}

std::string ServedName(const SessionCalls& session, const TraceEvent& event) {
  const std::optional<std::string> kernel = KernelName(session, event.amount);
  return kernel.has_value() ? absl::StrCat(CallName(event), " ", *kernel) : CallName(event);
}

std::string NameOf(const SessionCalls& session, const TraceEvent& event) {
  switch (event.kind) {
    case TraceKind::kWait:
      return event.amount == 0 ? "waits for the device, spinning" : "waits for the device, asleep";
    case TraceKind::kReplyWait:
      return "waits for the worker";
    case TraceKind::kRepeat:
      return absl::StrCat("repeats ", event.amount, " messages");
    case TraceKind::kReplay:
      return absl::StrCat("replays ", event.amount, " launches");
    case TraceKind::kPark:
      return WaitName(event.amount);
    case TraceKind::kServe:
      return ServedName(session, event);
    case TraceKind::kDevice:
      return DeviceName(session, event);
    default:
      return CallName(event);
  }
}

const char* CategoryOf(TraceKind kind) {
  switch (kind) {
    case TraceKind::kCall:
    case TraceKind::kRepeat:
      return "client";
    case TraceKind::kServe:
    case TraceKind::kReplay:
      return "worker";
    case TraceKind::kDevice:
      return "device";
    default:
      return "waits";
  }
}

// Threads of the trace format: beyond those of cli/trace_json.cc, in an order for people.
struct Track {
  static constexpr uint64_t kFirst = 1 << 20;
  static constexpr uint64_t kPerSession = 2048;
  static constexpr uint64_t kStreams = 64;  // from here on, by slot
  static_assert(kStreams + ipc::limits::kStreamsMax <= kPerSession && ipc::kTraceTracks < kStreams);

  static uint64_t Of(uint64_t session, uint32_t track, uint32_t slot) {
    const uint64_t first = kFirst + session % kFirst * kPerSession;
    if (track == ipc::kDeviceTrack) return first + kStreams + slot;
    return first + (track == ipc::kWorkerTrack ? ipc::kTraceTracks : track);
  }
};

class Text {
 public:
  Text(const JobCalls& calls, int64_t origin_ns) : calls_(calls), origin_ns_(origin_ns) {}

  void Session(uint64_t id, const SessionCalls& session) {
    for (const auto& [number, track] : session.tracks) {
      std::set<uint64_t> named;
      for (const TraceEvent& event : track.events) {
        const uint64_t thread = Track::Of(id, number, event.slot);
        if (named.insert(thread).second) Name(thread, TitleOf(id, number, track, event));
        Slice(thread, NameOf(session, event), event);
      }
      if (track.lost != 0) Loss(Track::Of(id, number, 0), track.lost);
    }
  }
  std::string Take() { return std::move(text_); }

 private:
  static std::string TitleOf(uint64_t session, uint32_t number, const CallTrack& track,
                             const TraceEvent& event) {
    if (number == ipc::kWorkerTrack) return absl::StrCat("worker, session ", session);
    if (number == ipc::kDeviceTrack) {
      return event.slot < ipc::limits::kLegacySlots
                 ? absl::StrCat("device ", event.slot, ", default stream, session ", session)
                 : absl::StrCat("device, stream ", event.slot - ipc::limits::kLegacySlots + 1,
                                ", session ", session);
    }
    return absl::StrCat("calls, thread ", track.thread, ", session ", session);
  }

  void Name(uint64_t thread, const std::string& name) {
    Begin("M", "thread_name", thread);
    absl::StrAppend(&text_, ",\"args\":{\"name\":", Json(name).dump(), "}}");
  }

  void Slice(uint64_t thread, const std::string& name, const TraceEvent& event) {
    Begin("X", name, thread);
    absl::StrAppend(&text_, ",\"cat\":\"", CategoryOf(event.kind),
                    "\",\"ts\":", Us(event.begin_ns - origin_ns_),
                    ",\"dur\":", Us(event.end_ns - event.begin_ns), "}");
  }

  void Loss(uint64_t thread, uint64_t lost) {
    Begin("i", absl::StrCat(lost, " events lost"), thread);
    absl::StrAppend(&text_, ",\"s\":\"t\",\"ts\":", Us(calls_.end_ns - origin_ns_), "}");
  }

  void Begin(const char* phase, const std::string& name, uint64_t thread) {
    absl::StrAppend(&text_, text_.empty() ? "" : ",\n", "{\"ph\":\"", phase,
                    "\",\"name\":", Json(name).dump(), ",\"pid\":", calls_.job,
                    ",\"tid\":", thread);
  }

  // The format counts in microseconds.
  static std::string Us(int64_t ns) { return absl::StrFormat("%d.%03d", ns / 1000, ns % 1000); }

  const JobCalls& calls_;
  const int64_t origin_ns_;
  std::string text_;
};

}  // namespace

std::string CallsJson(const JobCalls& calls, int64_t origin_ns) {
  Text text(calls, origin_ns);
  for (const auto& [id, session] : calls.sessions) text.Session(id, session);
  return text.Take();
}

}  // namespace cli
