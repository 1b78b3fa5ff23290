#include "cli/call_events.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "absl/strings/escaping.h"
#include "cli/graph/records.h"
#include "ipc/calls.h"
#include "ipc/calls/limits.h"

namespace cli {
namespace {

using Json = nlohmann::json;
using ipc::TraceEvent;
using ipc::TraceKind;

bool IsOfTrack(TraceKind kind, uint32_t track) {
  switch (kind) {
    case TraceKind::kCall:
    case TraceKind::kWait:
    case TraceKind::kReplyWait:
    case TraceKind::kRepeat:
      return track >= ipc::kClientTracks;
    case TraceKind::kServe:
    case TraceKind::kReplay:
    case TraceKind::kPark:
      return track == ipc::kWorkerTrack;
    case TraceKind::kDevice:
      return track == ipc::kDeviceTrack;
    case TraceKind::kSent:
    case TraceKind::kWaited:
    case TraceKind::kImage:
    case TraceKind::kKernel:
      return false;  // records, which are read elsewhere
  }
  return false;
}

bool NamesCall(TraceKind kind) {
  return kind == TraceKind::kCall || kind == TraceKind::kServe || kind == TraceKind::kReplay ||
         kind == TraceKind::kDevice;
}

bool MakesSense(const TraceEvent& event, uint32_t track) {
  if (!IsOfTrack(event.kind, track)) return false;
  if (NamesCall(event.kind) && !ipc::OpFromUntrusted(event.op).has_value()) return false;
  if (event.slot != ipc::kNoTraceSlot && event.slot >= ipc::limits::kStreamsMax) return false;
  if (event.kind == TraceKind::kDevice && event.slot == ipc::kNoTraceSlot) return false;
  return event.begin_ns > 0 && event.end_ns >= event.begin_ns;
}

bool TakeSession(const Json& json, JobCalls* calls) {
  if (!json.is_object() || !json.value("tracks", Json()).is_array()) return false;
  SessionCalls& session = calls->sessions[json.value("session", uint64_t{0})];
  session.program = json.value("program", "");
  session.threads = json.value("threads", uint32_t{0});
  for (const Json& told : json["tracks"]) {
    const uint32_t number = told.value("track", ipc::kTraceTracks);
    std::string bytes;
    if (number >= ipc::kTraceTracks || !absl::Base64Unescape(told.value("events", ""), &bytes))
      return false;
    CallTrack& track = session.tracks[number];
    track.thread = told.value("thread", uint32_t{0});
    track.lost = told.value("lost", uint64_t{0});
    if (number == ipc::kSentTrack || number == ipc::kImageTrack) {
      track.records_untrusted += bytes;
    } else {
      calls->unreadable += DecodeEventsUntrusted(number, bytes, &track.events);
    }
  }
  return true;
}

// --- order ---------------------------------------------------------------------------------------

// A slice that begins within another ends within it.
void Nest(std::vector<TraceEvent>* events) {
  std::vector<int64_t> open;
  for (TraceEvent& event : *events) {
    while (!open.empty() && open.back() <= event.begin_ns) open.pop_back();
    if (!open.empty()) event.end_ns = std::min(event.end_ns, open.back());
    open.push_back(event.end_ns);
  }
}

// A stream does one thing after the other. The driver's times are rounded.
void Follow(std::vector<TraceEvent>* events) {
  std::map<uint32_t, int64_t> ended;  // by stream
  for (TraceEvent& event : *events) {
    int64_t& last = ended[event.slot];
    event.begin_ns = std::max(event.begin_ns, last);
    event.end_ns = std::max(event.end_ns, event.begin_ns);
    last = event.end_ns;
  }
}

}  // namespace

uint64_t DecodeEventsUntrusted(uint32_t track, std::string_view bytes,
                               std::vector<TraceEvent>* events) {
  uint64_t unreadable = 0;
  for (; bytes.size() >= sizeof(TraceEvent); bytes.remove_prefix(sizeof(TraceEvent))) {
    TraceEvent event;
    std::memcpy(&event, bytes.data(), sizeof event);
    if (MakesSense(event, track)) {
      events->push_back(event);
    } else {
      ++unreadable;
    }
  }
  return unreadable + (bytes.empty() ? 0 : 1);
}

bool TakeCallsUntrusted(const std::string& answer_json, CallsAnswer* answer, JobCalls* calls) {
  const Json json = Json::parse(answer_json, nullptr, false);
  if (!json.is_object() || !json.contains("sessions") || !json["sessions"].is_array()) return false;
  answer->whole = json.value("whole", true);
  answer->live = json.value("live", size_t{0});
  for (const Json& session : json["sessions"]) {
    if (!TakeSession(session, calls)) return false;
  }
  return true;
}

void NameKernels(JobCalls* calls) {
  for (auto& [id, session] : calls->sessions) {
    const auto track = session.tracks.find(ipc::kImageTrack);
    if (track == session.tracks.end()) continue;
    graph::DecodeKernelNamesUntrusted(track->second.records_untrusted, &session.kernels_untrusted,
                                      &calls->unreadable);
    track->second.records_untrusted.clear();
  }
}

void Order(JobCalls* calls) {
  for (auto& [id, session] : calls->sessions) {
    for (auto& [number, track] : session.tracks) {
      std::vector<TraceEvent>& events = track.events;
      std::erase_if(events, [calls](const TraceEvent& event) {
        return event.end_ns < calls->begin_ns || event.begin_ns > calls->end_ns;
      });
      for (TraceEvent& event : events) {
        event.begin_ns = std::max(event.begin_ns, calls->begin_ns);
        event.end_ns = std::min(event.end_ns, calls->end_ns);
      }
      std::stable_sort(events.begin(), events.end(), [](const TraceEvent& a, const TraceEvent& b) {
        return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
      });
      if (number == ipc::kDeviceTrack) {
        Follow(&events);
      } else {
        Nest(&events);
      }
    }
  }
}

void Cut(const JobCalls& calls, JobTimeline* timeline) {
  const int64_t begin_us = calls.begin_ns / 1000, end_us = calls.end_ns / 1000;
  const auto is_outside = [=](int64_t at_us) { return at_us < begin_us || at_us > end_us; };
  for (Piece& piece : timeline->pieces) {
    if (piece.end_us >= timeline->end_us) piece.end_us = end_us;
    piece.begin_us = std::max(piece.begin_us, begin_us);
    piece.end_us = std::min(piece.end_us, end_us);
  }
  std::erase_if(timeline->pieces, [](const Piece& piece) { return piece.end_us < piece.begin_us; });
  std::erase_if(timeline->marks, [&](const Mark& mark) { return is_outside(mark.at_us); });
  std::erase_if(timeline->lane_sizes, [&](const LaneSize& size) { return is_outside(size.at_us); });
  timeline->begin_us = begin_us;
  timeline->end_us = end_us;
}

CallLosses LossesOf(const JobCalls& calls) {
  CallLosses losses;
  for (const auto& [id, session] : calls.sessions) {
    for (const auto& [number, track] : session.tracks) losses.events += track.lost;
    losses.threads += session.threads - std::min(session.threads, ipc::kClientThreadsMax);
  }
  return losses;
}

}  // namespace cli
