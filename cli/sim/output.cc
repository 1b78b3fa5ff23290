#include "cli/sim/output.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/report/drawing.h"
#include "cli/table.h"

namespace sim {
namespace {

using Json = nlohmann::json;
using cli::Rows;
using report::SecondsText;

std::string Percent(double share) { return absl::StrFormat("%.1f %%", share * 100); }

Json Of(const Distribution& values) {
  return {{"mean", values.mean},
          {"p50", values.p50},
          {"p95", values.p95},
          {"p99", values.p99},
          {"max", values.max}};
}

Json Of(const JobOutcome& job) {
  Json json = {{"name", job.job.name},
               {"arrival_s", static_cast<double>(job.arrival_us) / 1e6},
               {"alone_s", job.job.AloneSeconds()},
               {"turns", job.turns},
               {"swaps", job.swaps}};
  if (job.first_run_us >= 0) {
    json["queueing_s"] = static_cast<double>(job.first_run_us - job.arrival_us) / 1e6;
  }
  if (job.end_us >= 0) json["jct_s"] = static_cast<double>(job.end_us - job.arrival_us) / 1e6;
  if (!job.reason.empty()) json["reason"] = job.reason;
  return json;
}

Json Of(const Summary& summary) {
  Json json = {{"policy", summary.policy},
               {"jobs_finished", summary.jobs},
               {"jobs_rejected", summary.rejected},
               {"makespan_s", summary.makespan_s},
               {"queueing_s", Of(summary.queueing_s)},
               {"jct_s", Of(summary.jct_s)},
               {"slowdown", Of(summary.slowdown)},
               {"utilisation", summary.utilisation},
               {"computing", summary.computing},
               {"switches", summary.switches},
               {"grants", summary.grants},
               {"revokes", summary.revokes},
               {"swaps", summary.swaps},
               {"lanes_max", summary.lanes_max},
               {"admitted_max", summary.admitted_max},
               {"events", summary.events}};
  if (summary.latency_ms.max > 0) {
    json["latency_ms"] = Of(summary.latency_ms);
    json["latency_alone_ms"] = summary.latency_alone_ms;
  }
  return json;
}

Json NameEvent(const char* what, size_t process, uint32_t thread, const std::string& name) {
  return {
      {"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

void AddTrace(const Outcome& outcome, size_t process, Json* events) {
  events->push_back(NameEvent("process_name", process, 0, outcome.policy));
  std::vector<bool> named;
  for (const Segment& segment : outcome.segments) {
    const uint32_t thread = segment.doing == Doing::kSwapping ? 0 : segment.lane;
    if (named.size() <= thread) named.resize(thread + 1);
    if (!named[thread]) {
      named[thread] = true;
      events->push_back(NameEvent("thread_name", process, thread,
                                  thread == 0 ? "swaps" : absl::StrCat("lane ", thread)));
    }
    events->push_back(
        {{"ph", "X"},
         {"name", outcome.jobs[segment.job].job.name},
         {"pid", process},
         {"tid", thread},
         {"ts", segment.begin_us},
         {"dur", segment.end_us - segment.begin_us},
         {"args",
          {{"from_iteration", segment.begin_iteration}, {"to_iteration", segment.end_iteration}}}});
  }
  for (const MemoryPoint& point : outcome.memory) {
    events->push_back(
        {{"ph", "C"},
         {"name", "memory MiB"},
         {"pid", process},
         {"ts", point.time_us},
         {"args",
          {{"persistent", point.persistent_bytes >> 20}, {"lanes", point.lane_bytes >> 20}}}});
  }
}

}  // namespace

std::string SummaryText(const std::vector<Summary>& summaries) {
  Rows rows = {{"POLICY", "JOBS", "MAKESPAN", "QUEUEING", "JCT MEAN", "JCT P50", "JCT P95",
                "JCT P99", "DEVICE", "SWITCHES", "SWAPS", "LANES"}};
  Rows latencies = {{"POLICY", "REQUEST ALONE", "MEAN", "P50", "P95", "P99", "MAX"}};
  std::string notes;
  for (const Summary& one : summaries) {
    rows.push_back(
        {one.policy, absl::StrCat(one.jobs), SecondsText(one.makespan_s),
         SecondsText(one.queueing_s.mean), SecondsText(one.jct_s.mean), SecondsText(one.jct_s.p50),
         SecondsText(one.jct_s.p95), SecondsText(one.jct_s.p99), Percent(one.utilisation),
         absl::StrCat(one.switches), absl::StrCat(one.swaps), absl::StrCat(one.lanes_max)});
    if (one.rejected != 0) {
      absl::StrAppend(&notes, one.policy, ": ", one.rejected, " jobs did not come to their end\n");
    }
    if (one.latency_ms.max == 0) continue;
    const Distribution& latency = one.latency_ms;
    std::vector<std::string> row = {one.policy};
    for (const double ms :
         {one.latency_alone_ms, latency.mean, latency.p50, latency.p95, latency.p99, latency.max}) {
      row.push_back(SecondsText(ms / 1e3));
    }
    latencies.push_back(row);
  }
  std::string text = cli::Table(rows, 1);
  if (latencies.size() > 1) absl::StrAppend(&text, "\n", cli::Table(latencies, 1));
  return text + notes;
}

std::string JobsTableText(const Outcome& outcome) {
  Rows rows = {{"JOB", "ARRIVAL", "ALONE", "QUEUEING", "JCT", "TURNS", "SWAPS", "NOTE"}};
  for (const JobOutcome& job : outcome.jobs) {
    const double queueing = static_cast<double>(job.first_run_us - job.arrival_us) / 1e6;
    const double jct = static_cast<double>(job.end_us - job.arrival_us) / 1e6;
    rows.push_back({job.job.name, SecondsText(static_cast<double>(job.arrival_us) / 1e6),
                    SecondsText(job.job.AloneSeconds()),
                    job.first_run_us < 0 ? "-" : SecondsText(queueing),
                    job.end_us < 0 ? "-" : SecondsText(jct), absl::StrCat(job.turns),
                    absl::StrCat(job.swaps), job.reason});
  }
  return cli::Table(rows, 1);
}

std::string SummaryJson(const std::vector<Summary>& summaries,
                        const std::vector<Outcome>& outcomes) {
  Json policies = Json::array();
  for (size_t i = 0; i < summaries.size(); ++i) {
    Json policy = Of(summaries[i]);
    policy["jobs"] = Json::array();
    for (const JobOutcome& job : outcomes[i].jobs) policy["jobs"].push_back(Of(job));
    policies.push_back(std::move(policy));
  }
  return Json{{"policies", policies}}.dump(2) + "\n";
}

std::string PerfettoJson(const std::vector<Outcome>& outcomes) {
  Json events = Json::array();
  for (size_t i = 0; i < outcomes.size(); ++i) AddTrace(outcomes[i], i + 1, &events);
  return Json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}}.dump();
}

}  // namespace sim
