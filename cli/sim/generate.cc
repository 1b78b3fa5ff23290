#include "cli/sim/generate.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <queue>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/sim/random.h"
#include "cli/sim/statistics.h"
#include "cli/sim/workloads.h"

namespace sim {
namespace {

constexpr size_t kSalusJobs = 100;

double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

Completion CompletionOf(std::vector<double> jcts, double makespan) {
  Completion result;
  result.mean_jct = Sum(jcts) / static_cast<double>(jcts.size());
  result.p95_jct = Percentile(&jcts, 95);
  result.makespan = makespan;
  return result;
}

double Rounded(double value) { return std::round(value * 1e4) / 1e4; }  // for people's eyes

bool Near(double value, double wanted) { return std::abs(value / wanted - 1) <= kFitTolerance; }

Trace DrawTrace(double sigma, double window, Random* random) {
  Trace trace;
  for (size_t i = 0; i < kSalusJobs; ++i) {
    trace.service.push_back(std::exp(sigma * random->Normal()));
    trace.arrival.push_back(random->Between(0, window));
  }
  std::sort(trace.arrival.begin(), trace.arrival.end());
  const double first = trace.arrival.front();
  for (double& arrival : trace.arrival) arrival -= first;
  // What FIFO's row says of a job's service: completion less queueing, a mean of 3.0 minutes.
  const double scale =
      (kPaperFifoMean - kPaperFifoQueueing) * static_cast<double>(kSalusJobs) / Sum(trace.service);
  for (double& service : trace.service) service *= scale;
  return trace;
}

bool LikeThePaper(const Trace& trace) {
  const Completion fifo = SingleServerFifo(trace);
  if (!Near(fifo.mean_jct, kPaperFifoMean) || !Near(fifo.p95_jct, kPaperFifoP95) ||
      !Near(fifo.makespan, kPaperFifoMakespan)) {
    return false;
  }
  return Near(SingleServerSrtf(trace).mean_jct, kPaperSrtfMean);
}

Job RandomJob(double seconds, size_t number, Random* random) {
  const std::vector<Workload>& workloads = SalusWorkloads();
  Job job = JobOf(workloads[random->Index(workloads.size())], seconds);
  // The chosen workload's iterations, stretched a little so that they fill the time exactly.
  job.iteration_ms = std::max(0.001, Rounded(seconds * 1e3 / static_cast<double>(job.iterations)));
  job.name = absl::StrCat(job.name, "-", number);
  return job;
}

// What is not known of a model is the same for all its jobs of a trace, and another in the next.
double DrawnBusyPercent(uint64_t seed, size_t workload) {
  Random random(seed * 1'000'003 + workload);
  return std::round(random.Between(kSuperresBusyPercent, kClassifierBusyPercent));
}

}  // namespace

Completion SingleServerFifo(const Trace& trace) {
  std::vector<double> jcts;
  double now = 0;
  for (size_t i = 0; i < trace.service.size(); ++i) {
    now = std::max(now, trace.arrival[i]) + trace.service[i];
    jcts.push_back(now - trace.arrival[i]);
  }
  return CompletionOf(std::move(jcts), now);
}

Completion SingleServerSrtf(const Trace& trace) {
  using Entry = std::pair<double, size_t>;  // what remains, of which
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> waiting;
  std::vector<double> jcts(trace.service.size());
  double now = 0;
  size_t next = 0;
  while (next < trace.service.size() || !waiting.empty()) {
    if (waiting.empty()) now = std::max(now, trace.arrival[next]);
    while (next < trace.service.size() && trace.arrival[next] <= now) {
      waiting.push({trace.service[next], next});
      ++next;
    }
    const Entry shortest = waiting.top();
    waiting.pop();
    const double until = next < trace.service.size() ? trace.arrival[next] : HUGE_VAL;
    if (now + shortest.first <= until) {
      now += shortest.first;
      jcts[shortest.second] = now - trace.arrival[shortest.second];
    } else {
      waiting.push({shortest.first - (until - now), shortest.second});
      now = until;
    }
  }
  return CompletionOf(std::move(jcts), now);
}

std::vector<Job> GenerateLognormal(const LognormalPlan& plan) {
  Random random(plan.seed);
  const size_t count = static_cast<size_t>(plan.jobs);
  std::vector<double> seconds;
  for (size_t i = 0; i < count; ++i) seconds.push_back(std::exp(plan.sigma * random.Normal()));
  const double scale = plan.mean_s * static_cast<double>(count) / Sum(seconds);
  for (double& value : seconds) value *= scale;
  const double window = plan.window_s > 0 ? plan.window_s : Sum(seconds) / 2;
  std::vector<double> arrivals;
  for (size_t i = 0; i < count; ++i) arrivals.push_back(random.Between(0, window));
  std::sort(arrivals.begin(), arrivals.end());
  std::vector<Job> jobs;
  const size_t commands = static_cast<size_t>(plan.commands);
  for (size_t i = 0; i < count; ++i) {
    const size_t kind = commands == 0 ? i : random.Index(std::min(commands, count));
    if (commands == 0) {
      jobs.push_back(RandomJob(seconds[kind], i, &random));
    } else {  // the same command runs about as long each time: a spread of 10 %
      Random own(plan.seed * 1'000'003 + kind);
      jobs.push_back(RandomJob(seconds[kind] * std::exp(0.1 * random.Normal()), i, &own));
    }
    if (commands != 0) jobs.back().command = absl::StrCat("command-", kind);
    jobs.back().arrival_s = Rounded(arrivals[i]);
  }
  return jobs;
}

FittedTrace FitSalusTrace(uint64_t seed) {
  FittedTrace fitted;
  Random random(seed);
  for (;;) {
    ++fitted.tries;
    fitted.sigma = random.Between(0.7, 1.6);
    fitted.window_min = random.Between(20, 90);
    const Trace trace = DrawTrace(fitted.sigma, fitted.window_min, &random);
    if (!LikeThePaper(trace)) continue;
    for (size_t i = 0; i < trace.service.size(); ++i) {
      fitted.jobs.push_back(RandomJob(trace.service[i] * 60, i, &random));
      Job& job = fitted.jobs.back();
      job.arrival_s = Rounded(trace.arrival[i] * 60);
      const Workload& workload = *FindWorkload(job.command);
      if (workload.busy_percent == 0) {
        job.busy_percent =
            DrawnBusyPercent(seed, static_cast<size_t>(&workload - SalusWorkloads().data()));
      }
    }
    return fitted;
  }
}

}  // namespace sim
