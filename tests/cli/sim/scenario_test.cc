// The scenarios of examples/sim, with the outcome that each is there to show.
#include <gtest/gtest.h>

#include <map>

#include "cli/sim/engine.h"
#include "cli/sim/generate.h"
#include "cli/sim/jobs_csv.h"
#include "cli/sim/statistics.h"
#include "cli/sim/workloads.h"

namespace sim {
namespace {

constexpr double kForever = 1e6;  // no turn is promised

Experiment Scenario(const std::string& name) {
  Experiment experiment;
  const absl::StatusOr<std::vector<Job>> jobs =
      ReadJobs(std::string(LANEWAY_EXAMPLES) + "/" + name + ".csv");
  EXPECT_TRUE(jobs.ok()) << jobs.status();
  if (jobs.ok()) experiment.jobs = *jobs;
  experiment.device.memory_mib = static_cast<int64_t>(kSalusDeviceMib);
  experiment.bounds.starvation_s = kForever;
  experiment.record = true;
  return experiment;
}

Outcome Simulated(Experiment experiment, const std::string& policy) {
  experiment.policy = policy;
  absl::StatusOr<Outcome> outcome = Simulate(experiment);
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  return outcome.ok() ? *std::move(outcome) : Outcome();
}

Summary SummaryOf(const Experiment& experiment, const std::string& policy) {
  const Summary summary = Summarise(Simulated(experiment, policy));
  EXPECT_EQ(summary.rejected, 0) << policy;
  return summary;
}

double Jct(const Outcome& outcome, size_t job) {
  return static_cast<double>(outcome.jobs[job].end_us - outcome.jobs[job].arrival_us) / 1e6;
}

// Iterations of a job between two times.
double Iterations(const Outcome& outcome, size_t job, double begin_s, double end_s) {
  double sum = 0;
  for (const Segment& segment : outcome.segments) {
    if (segment.job != job || segment.doing != Doing::kIterating) continue;
    const double begin = std::max(begin_s, static_cast<double>(segment.begin_us) / 1e6);
    const double end = std::min(end_s, static_cast<double>(segment.end_us) / 1e6);
    const double length = static_cast<double>(segment.end_us - segment.begin_us) / 1e6;
    if (end <= begin) continue;
    sum += (segment.end_iteration - segment.begin_iteration) * (end - begin) / length;
  }
  return sum;
}

// --- the paper

TEST(SalusScenarioTest, Figure28ShorterJobsInterrupt) {
  const Outcome outcome = Simulated(Scenario("salus_srtf_snapshot"), "srtf");
  EXPECT_NEAR(Jct(outcome, 1), 60, 1.5) << "#0 stops at once for #1";
  EXPECT_LT(outcome.jobs[3].end_us, outcome.jobs[2].first_run_us) << "#3 is shorter than #2";
  EXPECT_NEAR(Jct(outcome, 5), 30, 1.5) << "#5 interrupts #4";
  EXPECT_GT(outcome.jobs[4].turns, 1);
  for (size_t i = 1; i < 6; ++i) EXPECT_LT(outcome.jobs[i].end_us, outcome.jobs[0].end_us);
  for (const Segment& segment : outcome.segments) {  // #0 only when nobody shorter is there
    if (segment.job != 0) continue;
    for (size_t i = 1; i < 6; ++i) {
      const int64_t begin = std::max(segment.begin_us, outcome.jobs[i].arrival_us);
      const int64_t end = std::min(segment.end_us, outcome.jobs[i].end_us);
      EXPECT_LE(end - begin, 230'000) << "at most the iteration that it was in";
    }
  }
}

TEST(SalusScenarioTest, Figure29SharesAreEqual) {
  Experiment experiment = Scenario("salus_fair_three_jobs");
  experiment.bounds.lanes_max = 1;  // as in the figure
  const Outcome outcome = Simulated(experiment, "fair");
  const double rate = 1 / 0.358;
  EXPECT_NEAR(Iterations(outcome, 0, 2, 14) / 12, rate, 0.03 * rate);
  for (const size_t job : {0, 1}) {
    EXPECT_NEAR(Iterations(outcome, job, 17, 29) / 12, rate / 2, 0.06 * rate) << job;
  }
  for (const size_t job : {0, 1, 2}) {
    EXPECT_NEAR(Iterations(outcome, job, 32, 56) / 24, rate / 3, 0.04 * rate) << job;
  }
  EXPECT_LT(outcome.jobs[2].end_us, outcome.jobs[1].end_us);
  EXPECT_LT(outcome.jobs[1].end_us, outcome.jobs[0].end_us);
  const Summary fifo = SummaryOf(experiment, "fifo");
  EXPECT_NEAR(Summarise(outcome).makespan_s / fifo.makespan_s, 1, 0.01) << "sharing is free";
}

TEST(SalusScenarioTest, Figure210PackingTrials) {
  for (const auto& [name, gain] :
       std::map<std::string, double>{{"salus_hyperparameter_resnet50_50", 1.07},
                                     {"salus_hyperparameter_superres_128", 2.38}}) {
    const Experiment experiment = Scenario(name);
    const double fifo = SummaryOf(experiment, "fifo").makespan_s;
    const double pack = SummaryOf(experiment, "pack").makespan_s;
    EXPECT_NEAR(fifo / pack, gain, 0.08 * gain) << name;
  }
}

TEST(SalusScenarioTest, Figure211FortyTwoModelsOnOneDevice) {
  const Outcome outcome = Simulated(Scenario("salus_inference_42"), "fair");
  const Summary summary = Summarise(outcome);
  EXPECT_EQ(outcome.admitted_max, 42);
  EXPECT_EQ(summary.jobs, 42);
  EXPECT_EQ(summary.swaps, 0) << "all models stay on the device";
  EXPECT_LT(summary.latency_ms.mean - summary.latency_alone_ms, 5);
}

// One trace; examples/sim/salus_table_2_1.py compares the means of several with the paper's.
TEST(SalusScenarioTest, Table21) {
  const Experiment experiment = Scenario("salus_table_2_1");
  std::map<std::string, Summary> of;
  for (const char* const policy : {"fifo", "srtf", "fair", "pack"}) {
    of[policy] = SummaryOf(experiment, policy);
  }
  const double minute = 60;
  EXPECT_NEAR(of["fifo"].jct_s.mean / minute, kPaperFifoMean, 0.035 * kPaperFifoMean) << "fitted";
  EXPECT_NEAR(of["srtf"].jct_s.mean / minute, kPaperSrtfMean, 0.035 * kPaperSrtfMean) << "fitted";
  EXPECT_NEAR(of["fair"].jct_s.mean / minute, 96.6, 0.25 * 96.6);
  EXPECT_NEAR(of["srtf"].makespan_s / of["fifo"].makespan_s, 1, 0.03);
  EXPECT_NEAR(of["fair"].makespan_s / of["fifo"].makespan_s, 1, 0.03);
  EXPECT_LT(of["pack"].makespan_s, 0.98 * of["fifo"].makespan_s);
  EXPECT_GT(of["pack"].makespan_s, 0.92 * of["fifo"].makespan_s);
  EXPECT_LT(of["pack"].jct_s.mean, of["fifo"].jct_s.mean);
  EXPECT_GT(of["pack"].jct_s.mean, of["fair"].jct_s.mean);
}

// --- learned durations

TEST(LearningScenarioTest, RepeatedCommandsReachMostOfTheOracle) {
  Experiment experiment = Scenario("repeated_commands");
  const double fifo = SummaryOf(experiment, "fifo").jct_s.mean;
  experiment.knowledge = Knowledge::kExact;
  const double oracle = SummaryOf(experiment, "srtf").jct_s.mean;
  experiment.knowledge = Knowledge::kLearned;
  const double learned = SummaryOf(experiment, "srtf").jct_s.mean;
  experiment.knowledge = Knowledge::kNothing;
  const double blind = SummaryOf(experiment, "srtf").jct_s.mean;
  EXPECT_GE((fifo - learned) / (fifo - oracle), 0.85)
      << "fifo " << fifo << " oracle " << oracle << " learned " << learned;
  EXPECT_GT(blind, learned) << "what is learned is worth something";
}

// --- where our policies lose

double LongestGap(const Outcome& outcome, size_t job) {
  int64_t gap = 0;
  int64_t last = -1;
  for (const Segment& segment : outcome.segments) {
    if (segment.job != job || segment.doing != Doing::kIterating) continue;
    if (last >= 0) gap = std::max(gap, segment.begin_us - last);
    last = segment.end_us;
  }
  return static_cast<double>(gap) / 1e6;
}

TEST(LosingScenarioTest, SrtfStarvesTheLong) {
  Experiment experiment = Scenario("losing_srtf_starves_the_long");
  const Outcome fifo = Simulated(experiment, "fifo");
  const Outcome srtf = Simulated(experiment, "srtf");
  EXPECT_GT(Jct(srtf, 0), 3 * Jct(fifo, 0));
  EXPECT_GT(LongestGap(srtf, 0), 1500);
  EXPECT_LT(Summarise(srtf).jct_s.mean, Summarise(fifo).jct_s.mean) << "what it is paid with";
  experiment.bounds.starvation_s = 60;
  const Outcome promised = Simulated(experiment, "srtf");
  EXPECT_LE(LongestGap(promised, 0), 60 + 1) << "a promised turn, after somebody's iteration";
  EXPECT_GT(promised.jobs[0].turns, srtf.jobs[0].turns);
}

TEST(LosingScenarioTest, FairKeepsEqualJobsAllWaiting) {
  const Experiment experiment = Scenario("losing_fair_equal_jobs");
  const Summary fifo = SummaryOf(experiment, "fifo");
  const Summary fair = SummaryOf(experiment, "fair");
  EXPECT_GT(fair.jct_s.mean, 1.6 * fifo.jct_s.mean);
  EXPECT_NEAR(fair.makespan_s, fifo.makespan_s, 0.02 * fifo.makespan_s);
}

TEST(LosingScenarioTest, PackingWhatFightsOverCaches) {
  Experiment experiment = Scenario("losing_pack_interference");
  experiment.knowledge = Knowledge::kNothing;
  const double fifo = SummaryOf(experiment, "fifo").makespan_s;
  EXPECT_LT(SummaryOf(experiment, "pack").makespan_s, 1.1 * fifo) << "it sees what they lose";
  experiment.knowledge = Knowledge::kExact;
  EXPECT_LT(SummaryOf(experiment, "pack").makespan_s, 1.1 * fifo) << "it knows what they lose";
}

TEST(LosingScenarioTest, AHistoryThatSaysNothing) {
  Experiment experiment = Scenario("losing_srtf_misled");
  const double oracle = SummaryOf(experiment, "srtf").jct_s.mean;
  experiment.knowledge = Knowledge::kLearned;
  const double misled = SummaryOf(experiment, "srtf").jct_s.mean;
  EXPECT_GT(misled, 1.3 * oracle);
}

}  // namespace
}  // namespace sim
