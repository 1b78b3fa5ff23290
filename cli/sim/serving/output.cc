#include "cli/sim/serving/output.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/report/drawing.h"
#include "cli/report/page.h"

namespace sim::serving {
namespace {

constexpr size_t kPointsMax = 200;  // of a curve

report::Curve CurveOf(const Served& run) {
  report::Curve curve;
  curve.name = run.mode;
  std::vector<double> sorted = run.token_ms;
  std::sort(sorted.begin(), sorted.end());
  const size_t stride = std::max<size_t>(1, sorted.size() / kPointsMax);
  for (size_t i = 0; i < sorted.size(); i += stride) {
    const double share = 100.0 * static_cast<double>(i + 1) / static_cast<double>(sorted.size());
    curve.points.push_back({sorted[i], share});
  }
  return curve;
}

}  // namespace

std::string ServedText(const std::vector<Served>& runs) {
  std::string text =
      absl::StrFormat("%-18s %9s %8s %9s %12s %12s %12s %12s\n", "batching", "answered", "refused",
                      "per s", "p50 ms/token", "p99 ms/token", "p50 first ms", "preemptions");
  for (const Served& run : runs) {
    absl::StrAppendFormat(&text, "%-18s %9d %8d %9.3f %12.1f %12.1f %12.0f %12d\n", run.mode,
                          run.token_ms.size(), run.refused, run.per_s(),
                          Quantile(run.token_ms, 0.5), Quantile(run.token_ms, 0.99),
                          Quantile(run.first_ms, 0.5), run.counters.preemptions);
  }
  return text;
}

std::string ServedJson(const std::vector<Served>& runs) {
  nlohmann::json all = nlohmann::json::array();
  for (const Served& run : runs) {
    all.push_back({{"batching", run.mode},
                   {"answered", run.token_ms.size()},
                   {"refused", run.refused},
                   {"seconds", run.seconds},
                   {"per_s", run.per_s()},
                   {"token_ms_p50", Quantile(run.token_ms, 0.5)},
                   {"token_ms_p99", Quantile(run.token_ms, 0.99)},
                   {"next_ms_p50", Quantile(run.next_ms, 0.5)},
                   {"next_ms_p99", Quantile(run.next_ms, 0.99)},
                   {"first_ms_p50", Quantile(run.first_ms, 0.5)},
                   {"first_ms_p99", Quantile(run.first_ms, 0.99)},
                   {"steps", run.counters.steps},
                   {"computed_tokens", run.counters.computed_tokens},
                   {"recomputed_tokens", run.counters.recomputed_tokens},
                   {"preemptions", run.counters.preemptions},
                   {"prefix_query_tokens", run.counters.prefix_query_tokens},
                   {"prefix_hit_tokens", run.counters.prefix_hit_tokens}});
  }
  return nlohmann::json{{"batchings", all}}.dump() + "\n";
}

std::string ServedHtml(const std::string& title, const std::vector<Served>& runs) {
  report::Section figures;
  figures.heading = "Batchings";
  figures.table.head = {"batching",     "answered",     "refused",      "per s",
                        "p50 ms/token", "p99 ms/token", "p50 first ms", "preemptions"};
  report::Chart chart;
  chart.title = "Requests with at most this latency";
  chart.x_label = "ms per token of the answer";
  chart.y_label = "percent";
  chart.y_max = 100;
  for (const Served& run : runs) {
    figures.table.rows.push_back({run.mode, absl::StrCat(run.token_ms.size()),
                                  absl::StrCat(run.refused), absl::StrFormat("%.3f", run.per_s()),
                                  absl::StrFormat("%.1f", Quantile(run.token_ms, 0.5)),
                                  absl::StrFormat("%.1f", Quantile(run.token_ms, 0.99)),
                                  absl::StrFormat("%.0f", Quantile(run.first_ms, 0.5)),
                                  absl::StrCat(run.counters.preemptions)});
    chart.curves.push_back(CurveOf(run));
  }
  figures.drawings.push_back(report::ChartSvg(chart));
  return report::PageHtml({title, "", {figures}});
}

}  // namespace sim::serving
