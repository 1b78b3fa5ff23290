#include "cli/load/summary.h"

#include <algorithm>
#include <limits>

namespace load {
namespace {

double Ms(int64_t us) { return static_cast<double>(us) / 1e3; }

bool IsRefusal(const Answer& answer) { return answer.status == 429 || answer.status == 503; }

serve::metrics::LatencyTimes TimesOf(const Answer& answer) {
  const int64_t tokens =
      std::max(answer.answer_tokens, static_cast<int64_t>(answer.tokens_us.size()));
  const int64_t first_us = answer.FirstUs();
  const int64_t last_us = answer.tokens_us.empty() ? first_us : answer.tokens_us.back();
  return serve::metrics::TimesOfAnswer(answer.sent_us, first_us, last_us, answer.end_us, tokens);
}

// The figures of which a distribution is made, by name.
using Values = std::map<std::string, std::vector<double>>;

void AddAnswered(const Answer& answer, const Goals& goals, Summary* summary, Values* values) {
  ++summary->answered;
  summary->prompt_tokens += answer.prompt_tokens;
  summary->answer_tokens += answer.answer_tokens;
  const serve::metrics::LatencyTimes times = TimesOf(answer);
  for (const auto& [name, ms] : times) (*values)[name].push_back(ms);
  for (size_t i = 1; i < answer.tokens_us.size(); ++i) {
    (*values)["itl"].push_back(Ms(answer.tokens_us[i] - answer.tokens_us[i - 1]));
  }
  if (serve::metrics::MeetsGoals(times, goals)) ++summary->good;
}

}  // namespace

Summary SummaryOf(const std::vector<Answer>& answers, const Goals& goals) {
  Summary summary;
  Values values;
  int64_t begin_us = std::numeric_limits<int64_t>::max();
  int64_t end_us = 0;
  for (const Answer& answer : answers) {
    ++summary.requests;
    begin_us = std::min(begin_us, answer.sent_us);
    end_us = std::max(end_us, answer.end_us);
    summary.late_ms = std::max(summary.late_ms, Ms(answer.sent_us - answer.due_us));
    if (answer.ok()) {
      AddAnswered(answer, goals, &summary, &values);
      continue;
    }
    ++summary.failures[answer.failure];
    ++(IsRefusal(answer) ? summary.refused : summary.failed);
    if (IsRefusal(answer)) values["refusal"].push_back(Ms(answer.end_us - answer.sent_us));
  }
  if (!answers.empty()) summary.seconds = static_cast<double>(end_us - begin_us) / 1e6;
  summary.ttft_ms = sim::DistributionOf(std::move(values["ttft"]));
  summary.tpot_ms = sim::DistributionOf(std::move(values["tpot"]));
  summary.itl_ms = sim::DistributionOf(std::move(values["itl"]));
  summary.e2el_ms = sim::DistributionOf(std::move(values["e2el"]));
  summary.refusal_ms = sim::DistributionOf(std::move(values["refusal"]));
  return summary;
}

}  // namespace load
