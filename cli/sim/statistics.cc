#include "cli/sim/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace sim {

double Percentile(std::vector<double>* values, double percent) {
  if (values->empty()) return 0;
  const double rank = std::ceil(percent / 100 * static_cast<double>(values->size()));
  const size_t index = static_cast<size_t>(std::max(rank, 1.0)) - 1;
  std::nth_element(values->begin(), values->begin() + static_cast<ptrdiff_t>(index), values->end());
  return (*values)[index];
}

Distribution DistributionOf(std::vector<double> values) {
  Distribution result;
  if (values.empty()) return result;
  for (const double value : values) {
    result.mean += value / static_cast<double>(values.size());
    result.max = std::max(result.max, value);
  }
  result.p50 = Percentile(&values, 50);
  result.p95 = Percentile(&values, 95);
  result.p99 = Percentile(&values, 99);
  return result;
}

Summary Summarise(const Outcome& outcome) {
  Summary summary;
  summary.policy = outcome.policy;
  std::vector<double> queueing;
  std::vector<double> jct;
  std::vector<double> slowdown;
  std::vector<double> latency;
  double alone_ms = 0;
  for (const JobOutcome& job : outcome.jobs) {
    if (job.end_us < 0) {
      ++summary.rejected;
      continue;
    }
    ++summary.jobs;
    queueing.push_back(static_cast<double>(job.first_run_us - job.arrival_us) / 1e6);
    jct.push_back(static_cast<double>(job.end_us - job.arrival_us) / 1e6);
    slowdown.push_back(jct.back() / job.job.AloneSeconds());
    for (const int64_t latency_us : job.latency_us) {
      latency.push_back(static_cast<double>(latency_us) / 1e3);
      alone_ms += job.job.iteration_ms;
    }
  }
  summary.queueing_s = DistributionOf(std::move(queueing));
  summary.jct_s = DistributionOf(std::move(jct));
  summary.slowdown = DistributionOf(std::move(slowdown));
  if (!latency.empty()) summary.latency_alone_ms = alone_ms / static_cast<double>(latency.size());
  summary.latency_ms = DistributionOf(std::move(latency));
  const double makespan_us = static_cast<double>(outcome.end_us - outcome.begin_us);
  summary.makespan_s = makespan_us / 1e6;
  if (makespan_us > 0) {
    summary.utilisation = outcome.busy_us / makespan_us;
    summary.computing = outcome.computing_us / makespan_us;
  }
  summary.switches = outcome.switches;
  summary.grants = outcome.grants;
  summary.revokes = outcome.revokes;
  summary.swaps = outcome.swaps;
  summary.lanes_max = outcome.lanes_max;
  summary.admitted_max = outcome.admitted_max;
  summary.events = outcome.events;
  return summary;
}

}  // namespace sim
