#include "cli/sim/generate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "cli/sim/jobs_csv.h"
#include "cli/sim/random.h"
#include "cli/sim/workloads.h"

namespace sim {
namespace {

TEST(GenerateTest, SingleServerByHand) {
  const Trace trace{{0, 1, 2}, {10, 2, 1}};
  const Completion fifo = SingleServerFifo(trace);
  EXPECT_DOUBLE_EQ(fifo.mean_jct, (10 + 11 + 11) / 3.0);
  EXPECT_DOUBLE_EQ(fifo.makespan, 13);
  EXPECT_DOUBLE_EQ(fifo.p95_jct, 11);
  const Completion srtf = SingleServerSrtf(trace);  // 1 runs 1..3, 2 runs 3..4, 0 ends at 13
  EXPECT_DOUBLE_EQ(srtf.mean_jct, (13 + 2 + 2) / 3.0);
  EXPECT_DOUBLE_EQ(srtf.makespan, 13);
}

TEST(GenerateTest, TheSameSeedGivesTheSameJobs) {
  LognormalPlan plan;
  plan.seed = 5;
  EXPECT_EQ(JobsText(GenerateLognormal(plan), ""), JobsText(GenerateLognormal(plan), ""));
  LognormalPlan other = plan;
  other.seed = 6;
  EXPECT_NE(JobsText(GenerateLognormal(plan), ""), JobsText(GenerateLognormal(other), ""));
}

TEST(GenerateTest, LognormalKeepsItsMeanAndItsTail) {
  LognormalPlan plan;
  plan.jobs = 5000;
  plan.sigma = 1;
  plan.mean_s = 100;
  double sum = 0;
  double log_sum = 0;
  double last = 0;
  for (const Job& job : GenerateLognormal(plan)) {
    sum += job.AloneSeconds();
    log_sum += std::log(job.AloneSeconds());
    EXPECT_GE(job.arrival_s, last);
    last = job.arrival_s;
  }
  EXPECT_NEAR(sum / 5000, 100, 0.01);
  EXPECT_NEAR(std::exp(log_sum / 5000), 100 / std::exp(0.5), 5) << "the median of a lognormal";
  EXPECT_LE(last, sum / 2);
}

TEST(GenerateTest, CommandsRepeatWithAboutTheirDuration) {
  LognormalPlan plan;
  plan.jobs = 200;
  plan.commands = 10;
  std::map<std::string, std::pair<double, double>> range;
  for (const Job& job : GenerateLognormal(plan)) {
    const double seconds = job.AloneSeconds();
    const auto [entry, is_new] = range.try_emplace(job.command, seconds, seconds);
    entry->second.first = std::min(entry->second.first, seconds);
    entry->second.second = std::max(entry->second.second, seconds);
  }
  EXPECT_EQ(range.size(), 10u);
  for (const auto& [command, ends] : range) EXPECT_LT(ends.second / ends.first, 2.2) << command;
}

TEST(GenerateTest, SalusTracesAreLikeThePaperWhereTheyAreFitted) {
  for (const uint64_t seed : {1, 2}) {
    const FittedTrace fitted = FitSalusTrace(seed);
    ASSERT_EQ(fitted.jobs.size(), 100u);
    Trace trace;
    for (const Job& job : fitted.jobs) {
      trace.arrival.push_back(job.arrival_s / 60);
      trace.service.push_back(job.AloneSeconds() / 60);
    }
    const Completion fifo = SingleServerFifo(trace);
    EXPECT_NEAR(fifo.mean_jct / kPaperFifoMean, 1, kFitTolerance + 1e-4);
    EXPECT_NEAR(fifo.p95_jct / kPaperFifoP95, 1, kFitTolerance + 1e-4);
    EXPECT_NEAR(fifo.makespan / kPaperFifoMakespan, 1, kFitTolerance + 1e-4);
    EXPECT_NEAR(SingleServerSrtf(trace).mean_jct / kPaperSrtfMean, 1, kFitTolerance + 1e-4);
  }
}

TEST(GenerateTest, WorkloadsFitTheDevice) {
  EXPECT_EQ(SalusWorkloads().size(), 45u);
  std::set<std::string> names;
  for (const Workload& workload : SalusWorkloads()) {
    names.insert(workload.name);
    EXPECT_LE(workload.peak_mib, kSalusDeviceMib) << workload.name;
    EXPECT_GT(PersistentMib(workload), 0) << workload.name;
    EXPECT_LT(PersistentMib(workload), workload.peak_mib) << workload.name;
    const Job job = JobOf(workload, 60);
    EXPECT_NEAR(job.AloneSeconds(), 60, workload.iteration_ms / 1e3) << workload.name;
  }
  EXPECT_EQ(names.size(), 45u);
  // What the paper tells (section 2.2.1).
  EXPECT_NEAR(PersistentMib(*FindWorkload("googlenet_25")), 110.9, 1e-9);
  EXPECT_NEAR(PersistentMib(*FindWorkload("resnet152_75")), 822.2, 1e-9);
  EXPECT_EQ(FindWorkload("nothing_1"), nullptr);
}

TEST(RandomTest, DistributionsHaveTheirMoments) {
  Random random(9);
  double sum = 0;
  double squares = 0;
  double waits = 0;
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const double value = random.Normal();
    sum += value;
    squares += value * value;
    waits += random.Exponential(3);
    const double uniform = random.Uniform();
    ASSERT_TRUE(uniform >= 0 && uniform < 1);
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.02);
  EXPECT_NEAR(squares / kDraws, 1, 0.02);
  EXPECT_NEAR(waits / kDraws, 3, 0.05);
}

}  // namespace
}  // namespace sim
