#include "cli/sim/html.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/report/drawing.h"
#include "cli/report/page.h"
#include "cli/sim/statistics.h"

namespace sim {
namespace {

using report::SecondsText;

constexpr size_t kJobsLabelled = 40;  // with more, rows are low and carry no text
constexpr size_t kJobsDrawn = 400;

double Seconds(int64_t us) { return static_cast<double>(us) / 1e6; }

report::Timeline LanesOf(const Outcome& outcome) {
  std::map<uint32_t, report::Row> lanes;
  for (const Segment& segment : outcome.segments) {
    if (segment.doing != Doing::kIterating) continue;
    report::Row& row = lanes[segment.lane];
    row.label = absl::StrCat("lane ", segment.lane);
    row.bands.push_back({Seconds(segment.begin_us), Seconds(segment.end_us),
                         static_cast<int>(segment.job), outcome.jobs[segment.job].job.name});
  }
  // A lane lives as long as it is needed and its number never comes again: those that do not
  // overlap share a row, so that the drawing has as many rows as there were lanes at once.
  std::vector<report::Row> rows;
  for (std::pair<const uint32_t, report::Row>& lane : lanes) {
    report::Row* place = nullptr;
    for (report::Row& row : rows) {
      if (place == nullptr && row.bands.back().end <= lane.second.bands.front().begin) {
        place = &row;
      }
    }
    if (place == nullptr) {
      rows.push_back({absl::StrCat("row ", rows.size() + 1), {}});
      place = &rows.back();
    }
    place->bands.insert(place->bands.end(), lane.second.bands.begin(), lane.second.bands.end());
  }
  return {absl::StrCat("Who held a lane: ", lanes.size(),
                       lanes.size() == 1 ? " lane, at most " : " lanes, at most ",
                       outcome.lanes_max, " at once"),
          Seconds(outcome.begin_us), Seconds(outcome.end_us), 24, std::move(rows)};
}

report::Timeline JobsOf(const Outcome& outcome) {
  const size_t count = std::min(outcome.jobs.size(), kJobsDrawn);
  std::vector<report::Row> rows(count);
  for (size_t i = 0; i < count; ++i) {
    const JobOutcome& job = outcome.jobs[i];
    rows[i].label = job.job.name;
    const int64_t end_us = job.end_us < 0 ? job.arrival_us : job.end_us;
    rows[i].bands.push_back({Seconds(job.arrival_us), Seconds(end_us), report::kToneWaiting,
                             absl::StrCat(job.job.name, " waits")});
  }
  for (const Segment& segment : outcome.segments) {
    if (segment.job >= count) continue;
    const bool swaps = segment.doing == Doing::kSwapping;
    const std::string& name = outcome.jobs[segment.job].job.name;
    rows[segment.job].bands.push_back({Seconds(segment.begin_us), Seconds(segment.end_us),
                                       swaps ? report::kToneMoving : static_cast<int>(segment.job),
                                       swaps ? absl::StrCat(name, ": memory moves") : name});
  }
  return {absl::StrCat("Jobs, in the order of arrival: grey waits, coloured iterates",
                       outcome.swaps > 0 ? ", orange moves memory" : "",
                       count < outcome.jobs.size() ? absl::StrCat(" (the first ", count, ")") : ""),
          Seconds(outcome.begin_us), Seconds(outcome.end_us), count <= kJobsLabelled ? 13.0 : 4.0,
          std::move(rows)};
}

report::Chart MemoryOf(const Outcome& outcome) {
  report::Curve all{"persistent memory and lanes", {}, true, true};
  report::Curve persistent{"persistent memory", {}, true, true};
  const double gib = 1 << 30;
  for (const MemoryPoint& point : outcome.memory) {
    const double time = Seconds(point.time_us);
    all.points.push_back(
        {time, static_cast<double>(point.persistent_bytes + point.lane_bytes) / gib});
    persistent.points.push_back({time, static_cast<double>(point.persistent_bytes) / gib});
  }
  report::Chart chart;
  chart.title = "Device memory";
  chart.y_label = "GiB";
  chart.x_min = Seconds(outcome.begin_us);
  chart.x_max = Seconds(outcome.end_us);
  chart.limit = static_cast<double>(outcome.capacity_bytes) / gib;
  chart.limit_name = "capacity";
  chart.curves = {std::move(all), std::move(persistent)};
  return chart;
}

report::Curve CdfOf(const std::string& name, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  report::Curve curve{name, {{0, 0}}, true, false};
  for (size_t i = 0; i < values.size(); ++i) {
    curve.points.push_back(
        {values[i], static_cast<double>(i + 1) / static_cast<double>(values.size())});
  }
  return curve;
}

report::Chart CompletionsOf(const std::vector<Outcome>& outcomes) {
  report::Chart chart;
  chart.title = "Completion times: the share of jobs that took no longer";
  chart.y_label = "share of jobs";
  chart.x_label = "from arrival to end";
  chart.y_max = 1;
  for (const Outcome& outcome : outcomes) {
    std::vector<double> seconds;
    for (const JobOutcome& job : outcome.jobs) {
      if (job.end_us >= 0) seconds.push_back(Seconds(job.end_us - job.arrival_us));
    }
    chart.curves.push_back(CdfOf(outcome.policy, std::move(seconds)));
  }
  return chart;
}

report::Table TableOf(const std::vector<Summary>& summaries) {
  report::Table table;
  table.head = {"policy",  "jobs",    "makespan", "queueing, mean", "JCT mean", "JCT p50",
                "JCT p95", "JCT p99", "device",   "switches",       "swaps",    "lanes"};
  for (const Summary& one : summaries) {
    table.rows.push_back(
        {one.policy, absl::StrCat(one.jobs), SecondsText(one.makespan_s),
         SecondsText(one.queueing_s.mean), SecondsText(one.jct_s.mean), SecondsText(one.jct_s.p50),
         SecondsText(one.jct_s.p95), SecondsText(one.jct_s.p99),
         absl::StrFormat("%.1f %%", one.utilisation * 100), absl::StrCat(one.switches),
         absl::StrCat(one.swaps), absl::StrCat(one.lanes_max)});
  }
  return table;
}

}  // namespace

std::string OutcomesHtml(const std::string& title, const std::vector<Outcome>& outcomes) {
  report::Page page;
  page.title = title;
  page.text =
      "Simulated: the production scheduler in virtual time, on a model of the device in which "
      "lanes that compute at once share it and fill each other's gaps.";
  std::vector<Summary> summaries;
  for (const Outcome& outcome : outcomes) summaries.push_back(Summarise(outcome));
  page.sections.push_back({"Policies side by side",
                           "",
                           TableOf(summaries),
                           {report::ChartSvg(CompletionsOf(outcomes))}});
  for (const Outcome& outcome : outcomes) {
    page.sections.push_back(
        {outcome.policy,
         "",
         {},
         {report::TimelineSvg(LanesOf(outcome)), report::TimelineSvg(JobsOf(outcome)),
          report::ChartSvg(MemoryOf(outcome))}});
  }
  return report::PageHtml(page);
}

}  // namespace sim
