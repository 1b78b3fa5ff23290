#include "cli/load/report.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/table.h"

namespace load {
namespace {

std::vector<std::string> RowOf(const char* name, const sim::Distribution& ms) {
  std::vector<std::string> row = {name};
  for (const double value : {ms.mean, ms.p50, ms.p95, ms.p99, ms.max}) {
    row.push_back(absl::StrFormat("%.1f", value));
  }
  return row;
}

nlohmann::json JsonOf(const sim::Distribution& ms) {
  return {{"mean", ms.mean}, {"p50", ms.p50}, {"p95", ms.p95}, {"p99", ms.p99}, {"max", ms.max}};
}

}  // namespace

std::string SummaryText(const Summary& summary, const Goals& goals) {
  std::string text = absl::StrFormat(
      "%d requests in %.1f s: %d answered, %d refused, %d failed\n"
      "%.2f requests/s, %.1f answer tokens/s, %.1f tokens/s with prompts\n",
      summary.requests, summary.seconds, summary.answered, summary.refused, summary.failed,
      summary.PerS(summary.answered), summary.PerS(summary.answer_tokens),
      summary.PerS(summary.prompt_tokens + summary.answer_tokens));
  if (!goals.empty()) {
    absl::StrAppendFormat(&text, "goodput %.2f requests/s: %d met every goal\n",
                          summary.PerS(summary.good), summary.good);
  }
  cli::Rows rows = {{"ms", "mean", "p50", "p95", "p99", "max"}};
  if (summary.answered > 0) {
    rows.push_back(RowOf("time to first token", summary.ttft_ms));
    rows.push_back(RowOf("time per output token", summary.tpot_ms));
    rows.push_back(RowOf("between tokens", summary.itl_ms));
    rows.push_back(RowOf("to the end", summary.e2el_ms));
  }
  if (summary.refused > 0) rows.push_back(RowOf("to a refusal", summary.refusal_ms));
  if (rows.size() > 1) absl::StrAppend(&text, "\n", cli::Table(rows, 1));
  for (const auto& [sentence, times] : summary.failures) {
    absl::StrAppend(&text, times, " x ", sentence, "\n");
  }
  if (summary.late_ms > 100) {
    absl::StrAppendFormat(&text,
                          "requests were sent up to %.0f ms late: --concurrency allows no more at "
                          "once\n",
                          summary.late_ms);
  }
  return text;
}

std::string SummaryJson(const Summary& summary, const Goals& goals) {
  const nlohmann::json json = {{"requests", summary.requests},
                               {"answered", summary.answered},
                               {"refused", summary.refused},
                               {"failed", summary.failed},
                               {"good", summary.good},
                               {"goals_ms", goals},
                               {"seconds", summary.seconds},
                               {"prompt_tokens", summary.prompt_tokens},
                               {"answer_tokens", summary.answer_tokens},
                               {"requests_per_s", summary.PerS(summary.answered)},
                               {"answer_tokens_per_s", summary.PerS(summary.answer_tokens)},
                               {"goodput_per_s", summary.PerS(summary.good)},
                               {"late_ms", summary.late_ms},
                               {"ttft_ms", JsonOf(summary.ttft_ms)},
                               {"tpot_ms", JsonOf(summary.tpot_ms)},
                               {"itl_ms", JsonOf(summary.itl_ms)},
                               {"e2el_ms", JsonOf(summary.e2el_ms)},
                               {"refusal_ms", JsonOf(summary.refusal_ms)},
                               {"failures", summary.failures}};
  return absl::StrCat(json.dump(2), "\n");
}

}  // namespace load
