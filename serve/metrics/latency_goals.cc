#include "serve/metrics/latency_goals.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace serve::metrics {

absl::StatusOr<LatencyGoals> ParseLatencyGoals(const std::string& text) {
  LatencyGoals goals;
  for (const absl::string_view word : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(word, ':');
    double ms = 0;
    if (parts.size() != 2 || (parts[0] != "ttft" && parts[0] != "tpot" && parts[0] != "e2el") ||
        !absl::SimpleAtod(parts[1], &ms) || !(ms > 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", word, "' is no goal: ttft:MS, tpot:MS and e2el:MS are"));
    }
    goals[parts[0]] = ms;
  }
  return goals;
}

LatencyTimes TimesOfAnswer(int64_t asked_us, int64_t first_us, int64_t last_us, int64_t end_us,
                           int64_t tokens) {
  const auto ms = [](int64_t us) { return static_cast<double>(us) / 1e3; };
  LatencyTimes times = {{"ttft", ms(first_us - asked_us)}, {"e2el", ms(end_us - asked_us)}};
  if (tokens > 1) times["tpot"] = ms(last_us - first_us) / static_cast<double>(tokens - 1);
  return times;
}

bool MeetsGoals(const LatencyTimes& times, const LatencyGoals& goals) {
  return std::all_of(goals.begin(), goals.end(), [&times](const auto& goal) {
    const auto time = times.find(goal.first);
    return time == times.end() || time->second <= goal.second;
  });
}

Attainment::Attainment(Registry* registry, const Labels& labels, LatencyGoals goals)
    : goals_(std::move(goals)) {
  if (goals_.empty()) return;
  counted_ = registry->AddCounter("laneway_serve_slo_answers",
                                  "answers, and requests that were refused or failed", labels);
  met_ =
      registry->AddCounter("laneway_serve_slo_answers_met", "answers that met every goal", labels);
  ratio_ = registry->AddGauge("laneway_serve_slo_attainment_ratio",
                              "the share of answers that met every goal", labels);
}

void Attainment::Count(bool met) {
  if (goals_.empty()) return;
  counted_->Add();
  if (met) met_->Add();
  ratio_->Set(met_->value() / counted_->value());
}

}  // namespace serve::metrics
