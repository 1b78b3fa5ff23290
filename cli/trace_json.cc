#include "cli/trace_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"

namespace cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr uint64_t kLanesProcess = 0;  // jobs count from 1
constexpr uint64_t kTracksPerSession = 4;

const char* NameOf(Activity activity) {
  switch (activity) {
    case Activity::kHolds:
      return "lane";
    case Activity::kIterates:
      return "iterations";
    case Activity::kWaits:
      return "waits";
    case Activity::kSwaps:
      return "swaps";
  }
  return "?";
}

uint64_t TrackOf(uint64_t session, Activity activity) {
  return session * kTracksPerSession + static_cast<uint64_t>(activity);
}

OrderedJson Named(const char* what, uint64_t process, uint64_t thread, const std::string& name) {
  return {
      {"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

std::string TitleOf(const Piece& piece) {
  switch (piece.activity) {
    case Activity::kHolds:
      return absl::StrCat("lane ", piece.lane);
    case Activity::kIterates:
      return piece.count == 1 ? "iteration" : absl::StrCat(piece.count, " iterations");
    case Activity::kWaits:
      return piece.text.empty() ? "wait" : piece.text;
    case Activity::kSwaps:
      return piece.text;
  }
  return "";
}

OrderedJson Slice(const Piece& piece, uint64_t process, uint64_t thread, const std::string& name,
                  int64_t begin_us) {
  OrderedJson args = {{"job", piece.job}, {"session", piece.session}};
  if (piece.count != 0) args["iterations"] = piece.count;
  if (piece.bytes != 0) args["bytes"] = piece.bytes;
  return {{"ph", "X"},
          {"name", name},
          {"cat", NameOf(piece.activity)},
          {"pid", process},
          {"tid", thread},
          {"ts", piece.begin_us - begin_us},
          {"dur", piece.end_us - piece.begin_us},
          {"args", args}};
}

void AddNames(const JobTimeline& timeline, OrderedJson* events) {
  std::set<uint64_t> jobs;
  for (const std::pair<const uint64_t, SessionSpan>& entry : timeline.sessions) {
    const SessionSpan& span = entry.second;
    if (jobs.insert(span.job).second) {
      events->push_back(
          Named("process_name", span.job, 0, absl::StrCat("job ", span.job, ": ", span.program)));
    }
    for (const Activity activity :
         {Activity::kHolds, Activity::kIterates, Activity::kWaits, Activity::kSwaps}) {
      events->push_back(Named("thread_name", span.job, TrackOf(entry.first, activity),
                              absl::StrCat(NameOf(activity), ", session ", entry.first)));
    }
  }
}

}  // namespace

std::string TraceJson(const JobTimeline& timeline, const std::string& more) {
  OrderedJson events = OrderedJson::array();
  AddNames(timeline, &events);
  std::set<uint64_t> lanes;
  for (const Piece& piece : timeline.pieces) {
    events.push_back(Slice(piece, piece.job, TrackOf(piece.session, piece.activity), TitleOf(piece),
                           timeline.begin_us));
    if (piece.activity != Activity::kHolds) continue;
    lanes.insert(piece.lane);
    events.push_back(Slice(piece, kLanesProcess, piece.lane, absl::StrCat("job ", piece.job),
                           timeline.begin_us));
  }
  for (const LaneSize& size : timeline.lane_sizes) {
    events.push_back({{"ph", "C"},
                      {"name", absl::StrCat("lane ", size.lane, " bytes")},
                      {"pid", kLanesProcess},
                      {"ts", size.at_us - timeline.begin_us},
                      {"args", {{"bytes", size.bytes}}}});
  }
  for (const Mark& mark : timeline.marks) {
    events.push_back({{"ph", "i"},
                      {"s", mark.job == 0 ? "g" : "p"},
                      {"name", mark.text.empty() ? mark.kind : mark.kind + ": " + mark.text},
                      {"pid", mark.job},
                      {"tid", mark.session * kTracksPerSession},
                      {"ts", mark.at_us - timeline.begin_us}});
  }
  if (!lanes.empty()) events.push_back(Named("process_name", kLanesProcess, 0, "lanes"));
  for (const uint64_t lane : lanes) {
    events.push_back(Named("thread_name", kLanesProcess, lane, absl::StrCat("lane ", lane)));
  }
  const auto is_name = [](const OrderedJson& event) { return event["ph"] == "M"; };
  std::stable_sort(events.begin(), events.end(), [&](const OrderedJson& a, const OrderedJson& b) {
    if (is_name(a) != is_name(b)) return is_name(a);
    return !is_name(a) && a["ts"].get<int64_t>() < b["ts"].get<int64_t>();
  });
  std::string list = events.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  list.pop_back();  // the bracket
  absl::StrAppend(&list, events.empty() || more.empty() ? "" : ",\n", more, "]");
  return absl::StrCat("{\"displayTimeUnit\":\"ms\",\"traceEvents\":", list, "}");
}

}  // namespace cli
