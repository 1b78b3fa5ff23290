#include "cli/live_report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/history.h"
#include "cli/report/drawing.h"
#include "cli/report/page.h"
#include "cli/table.h"
#include "cli/trace.h"

namespace cli {
namespace {

using Json = nlohmann::json;

constexpr size_t kFinishedMax = 50;
constexpr size_t kCurvesMax = 12;

double Seconds(int64_t us, const JobTimeline& timeline) {
  return static_cast<double>(us - timeline.begin_us) / 1e6;
}

// Each job keeps its colour in all drawings.
int ToneOf(uint64_t job, const JobTimeline& timeline) {
  std::vector<uint64_t> jobs;
  for (const std::pair<const uint64_t, SessionSpan>& entry : timeline.sessions) {
    jobs.push_back(entry.second.job);
  }
  std::sort(jobs.begin(), jobs.end());
  jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
  return static_cast<int>(std::lower_bound(jobs.begin(), jobs.end(), job) - jobs.begin());
}

report::Timeline Empty(const std::string& title, const JobTimeline& timeline) {
  report::Timeline drawing;
  drawing.title = title;
  drawing.end = std::max(Seconds(timeline.end_us, timeline), 1e-3);
  return drawing;
}

std::string DrawLanes(const JobTimeline& timeline) {
  report::Timeline drawing = Empty("Who held which lane", timeline);
  std::map<uint64_t, report::Row> rows;
  for (const Piece& piece : timeline.pieces) {
    if (piece.activity != Activity::kHolds) continue;
    report::Row& row = rows[piece.lane];
    row.label = absl::StrCat("lane ", piece.lane);
    row.bands.push_back({Seconds(piece.begin_us, timeline), Seconds(piece.end_us, timeline),
                         ToneOf(piece.job, timeline), absl::StrCat("job ", piece.job)});
  }
  for (std::pair<const uint64_t, report::Row>& row : rows) {
    std::stable_sort(
        row.second.bands.begin(), row.second.bands.end(),
        [](const report::Band& a, const report::Band& b) { return a.begin < b.begin; });
    drawing.rows.push_back(std::move(row.second));
  }
  return drawing.rows.empty() ? "" : report::TimelineSvg(drawing);
}

report::Band BandOf(const Piece& piece, const JobTimeline& timeline) {
  report::Band band{Seconds(piece.begin_us, timeline), Seconds(piece.end_us, timeline),
                    ToneOf(piece.job, timeline), ""};
  switch (piece.activity) {
    case Activity::kHolds:
      band.label = absl::StrCat("lane ", piece.lane);
      break;
    case Activity::kIterates:
      band.label = absl::StrCat(piece.count, piece.count == 1 ? " iteration" : " iterations");
      break;
    case Activity::kWaits:
      band.tone = report::kToneWaiting;
      band.label = absl::StrCat("waits for ", piece.text);
      break;
    case Activity::kSwaps:
      band.tone = report::kToneMoving;
      band.label = piece.text;
      break;
  }
  return band;
}

// A row per session: what it waited for, and over it what it did.
std::string DrawSessions(const JobTimeline& timeline) {
  report::Timeline drawing = Empty("What each session did", timeline);
  for (const std::pair<const uint64_t, SessionSpan>& entry : timeline.sessions) {
    report::Row row;
    row.label = absl::StrCat("job ", entry.second.job, ": ", entry.second.program);
    for (const Activity activity :
         {Activity::kWaits, Activity::kHolds, Activity::kIterates, Activity::kSwaps}) {
      for (const Piece& piece : timeline.pieces) {
        if (piece.session != entry.first || piece.activity != activity) continue;
        row.bands.push_back(BandOf(piece, timeline));
      }
    }
    drawing.rows.push_back(std::move(row));
  }
  return drawing.rows.empty() ? "" : report::TimelineSvg(drawing);
}

std::string DrawIterationTimes(const JobTimeline& timeline) {
  report::Chart chart;
  chart.title = "Time of an iteration";
  chart.x_label = "seconds";
  chart.y_label = "milliseconds";
  std::map<uint64_t, report::Curve> curves;
  for (const Piece& piece : timeline.pieces) {
    if (piece.activity != Activity::kIterates || piece.count == 0) continue;
    report::Curve& curve = curves[piece.session];
    const double ms = static_cast<double>(piece.end_us - piece.begin_us) / 1e3;
    curve.points.push_back(
        {Seconds(piece.end_us, timeline), ms / static_cast<double>(piece.count)});
  }
  for (std::pair<const uint64_t, report::Curve>& curve : curves) {
    if (chart.curves.size() == kCurvesMax) break;
    const SessionSpan& span = timeline.sessions.at(curve.first);
    curve.second.name = absl::StrCat(span.program, " (job ", span.job, ")");
    curve.second.tone = ToneOf(span.job, timeline);
    chart.curves.push_back(std::move(curve.second));
  }
  return chart.curves.empty() ? "" : report::ChartSvg(chart);
}

report::Section NowSection(const Json& top) {
  report::Section section;
  section.heading = "Now";
  for (const Json& device : top["devices"]) {
    absl::StrAppend(&section.text, "Device ", device.value("ordinal", 0), ", ",
                    device.value("name", ""), ": ", BytesText(device.value("used_bytes", 0ull)),
                    " of ", BytesText(device.value("capacity_bytes", 0ull)), " used. ");
  }
  absl::StrAppend(&section.text, "The policy is ", top.value("policy", ""), ".");
  section.table.head = {"program", "state", "job",    "lane",       "iterations", "per s",
                        "p50",     "p99",   "waited", "persistent", "ephemeral"};
  section.table.texts = 2;
  section.table.empty = "No program uses the device.";
  for (const Json& session : top["sessions"]) {
    const std::string wait = session.value("wait", "");
    section.table.rows.push_back(
        {session.value("program", ""),
         wait.empty() ? session.value("state", "") : absl::StrCat("waits for ", wait),
         absl::StrCat(session.value("job", 0ull)), absl::StrCat(session.value("lane", 0ull)),
         absl::StrCat(session.value("iterations", 0ull)),
         absl::StrFormat("%.1f", session.value("iterations_per_second", 0.0)),
         TimeText(session.value("p50_us", 0ull)), TimeText(session.value("p99_us", 0ull)),
         TimeText(session.value("waited_us", 0ull) + session.value("waiting_us", 0ull)),
         BytesText(session.value("persistent_bytes", 0ull)),
         BytesText(session.value("ephemeral_bytes", 0ull))});
  }
  return section;
}

report::Section MarksSection(const JobTimeline& timeline) {
  report::Section section;
  section.heading = "What happened besides";
  section.table.head = {"what", "text", "job", "after"};
  section.table.texts = 2;
  section.table.empty = "Nothing.";
  for (const Mark& mark : timeline.marks) {
    if (mark.kind == "revoke") continue;  // every switch has one
    section.table.rows.push_back({mark.kind, mark.text, mark.job == 0 ? "" : absl::StrCat(mark.job),
                                  report::SecondsText(Seconds(mark.at_us, timeline))});
  }
  return section;
}

report::Section FinishedSection(const std::vector<ipc::HistoryRecord>& history) {
  report::Section section;
  section.heading = "Finished jobs";
  section.table.head = {"command", "note", "exit", "ran", "iterations", "p50", "waited", "peak"};
  section.table.texts = 2;
  section.table.empty = "No job has ended yet.";
  const size_t first = history.size() > kFinishedMax ? history.size() - kFinishedMax : 0;
  for (size_t i = first; i < history.size(); ++i) {
    const ipc::HistoryRecord& record = history[i];
    section.table.rows.push_back(
        {record.command, record.note,
         record.exit == ipc::kExitUnknown ? "?" : absl::StrCat(record.exit),
         TimeText(record.ran_us), absl::StrCat(record.iterations), TimeText(record.p50_us),
         TimeText(record.waited_us), BytesText(record.peak_bytes)});
  }
  return section;
}

}  // namespace

std::string ReportHtml(const std::string& top_json, const JobTimeline& timeline,
                       const std::vector<ipc::HistoryRecord>& history) {
  report::Page page;
  page.title = "Laneway";
  page.text = absl::StrCat("The last ", report::SecondsText(Seconds(timeline.end_us, timeline)),
                           " that the daemon's journal holds.");
  page.sections.push_back(NowSection(Json::parse(top_json)));
  report::Section lanes;
  lanes.heading = "Lanes and sessions";
  lanes.text =
      "A colour is a job. A lane has one holder at a time; grey is waiting, hatched is memory on "
      "its way to or from the host.";
  for (const std::string& drawing :
       {DrawLanes(timeline), DrawSessions(timeline), DrawIterationTimes(timeline)}) {
    if (!drawing.empty()) lanes.drawings.push_back(drawing);
  }
  if (lanes.drawings.empty()) lanes.text = "Nothing has run yet.";
  page.sections.push_back(std::move(lanes));
  page.sections.push_back(MarksSection(timeline));
  page.sections.push_back(FinishedSection(history));
  return report::PageHtml(page);
}

int Report(const Request& request) {
  if (request.out.empty()) return Say(2, "say where to: laneway report --html FILE");
  const absl::StatusOr<std::string> top = AskDaemon(request, R"({"command":"top"})");
  if (!top.ok()) return Say(1, std::string(top.status().message()));
  const absl::StatusOr<std::vector<JournalEvent>> events = FetchJournal(request);
  if (!events.ok()) return Say(1, std::string(events.status().message()));
  const absl::StatusOr<std::vector<ipc::HistoryRecord>> history = ReadHistory();
  const absl::Status written = WriteText(
      request.out, ReportHtml(*top, BuildTimeline(*events, 0),
                              history.ok() ? *history : std::vector<ipc::HistoryRecord>()));
  return written.ok() ? 0 : Say(1, std::string(written.message()));
}

}  // namespace cli
