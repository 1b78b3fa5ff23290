// The engine on small scenarios whose outcome can be told by hand.
#include "cli/sim/engine.h"

#include <gtest/gtest.h>

#include "cli/sim/statistics.h"

namespace sim {
namespace {

Job Loop(double arrival_s, int64_t iterations, double iteration_ms) {
  Job job;
  job.arrival_s = arrival_s;
  job.iterations = iterations;
  job.iteration_ms = iteration_ms;
  job.persistent_mib = 100;
  job.ephemeral_mib = 400;
  return job;
}

Outcome Simulated(Experiment experiment) {
  experiment.record = true;
  for (size_t i = 0; i < experiment.jobs.size(); ++i)
    experiment.jobs[i].name = "job-" + std::to_string(i);
  const absl::StatusOr<Outcome> outcome = Simulate(experiment);
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  return outcome.ok() ? *outcome : Outcome();
}

double Jct(const Outcome& outcome, size_t job) {
  return static_cast<double>(outcome.jobs[job].end_us - outcome.jobs[job].arrival_us) / 1e6;
}

TEST(EngineTest, AloneAJobTakesAsLongAsItsIterations) {
  for (const char* const policy : {"fifo", "srtf", "fair", "pack"}) {
    Experiment experiment;
    experiment.policy = policy;
    experiment.jobs = {Loop(3, 100, 50)};
    experiment.device.switch_us = 40;
    const Outcome outcome = Simulated(experiment);
    EXPECT_NEAR(Jct(outcome, 0), 5.0, 0.001) << policy;
    EXPECT_EQ(outcome.jobs[0].first_run_us, 3'000'040) << policy;
    EXPECT_EQ(outcome.jobs[0].turns, 1) << policy << ": nobody else is there to switch to";
  }
}

TEST(EngineTest, FifoIsOneAfterTheOther) {
  Experiment experiment;
  experiment.jobs = {Loop(0, 100, 100), Loop(1, 10, 100), Loop(2, 20, 100)};
  const Outcome outcome = Simulated(experiment);
  EXPECT_NEAR(Jct(outcome, 0), 10, 0.01);
  EXPECT_NEAR(Jct(outcome, 1), 10, 0.01);
  EXPECT_NEAR(Jct(outcome, 2), 11, 0.01);
  EXPECT_NEAR(outcome.computing_us / 1e6, 13, 0.01);
}

TEST(EngineTest, SrtfLetsTheShorterThroughAtItsBoundary) {
  Experiment experiment;
  experiment.policy = "srtf";
  experiment.jobs = {Loop(0, 100, 100), Loop(1.05, 10, 100)};
  const Outcome outcome = Simulated(experiment);
  EXPECT_NEAR(Jct(outcome, 1), 1.05, 0.01) << "it waits for the present iteration's end at 1.1";
  EXPECT_NEAR(Jct(outcome, 0), 11, 0.01);
  EXPECT_EQ(outcome.jobs[0].turns, 2);
}

TEST(EngineTest, FairHalvesTheRate) {
  Experiment experiment;
  experiment.policy = "fair";
  experiment.jobs = {Loop(0, 100, 100), Loop(0, 50, 100)};
  const Outcome outcome = Simulated(experiment);
  EXPECT_NEAR(Jct(outcome, 1), 10, 0.3);
  EXPECT_NEAR(Jct(outcome, 0), 15, 0.1);
}

TEST(EngineTest, PackFillsGaps) {
  Experiment experiment;
  experiment.policy = "pack";
  for (int i = 0; i < 4; ++i) experiment.jobs.push_back(Loop(0, 100, 100));
  for (Job& job : experiment.jobs) job.busy_percent = 25;
  const Outcome packed = Simulated(experiment);
  experiment.policy = "fifo";
  const Outcome fifo = Simulated(experiment);
  EXPECT_NEAR(Jct(fifo, 3), 40, 0.1);
  EXPECT_LT(Jct(packed, 3), 20);
  EXPECT_EQ(packed.lanes_max, 4);
}

TEST(EngineTest, SegmentsAreAllTheIterationsAndNeverOverlapInALane) {
  for (const char* const policy : {"fifo", "srtf", "fair", "pack"}) {
    Experiment experiment;
    experiment.policy = policy;
    for (int i = 0; i < 12; ++i) experiment.jobs.push_back(Loop(i * 0.7, 10 + 7 * (i % 5), 30));
    experiment.device.memory_mib = 3000;
    const Outcome outcome = Simulated(experiment);
    std::vector<double> done(experiment.jobs.size());
    std::map<uint32_t, int64_t> free_us;
    for (const Segment& segment : outcome.segments) {
      if (segment.doing != Doing::kIterating) continue;
      EXPECT_EQ(segment.begin_iteration, done[segment.job]) << policy;
      EXPECT_GE(segment.begin_us, free_us[segment.lane]) << policy;
      done[segment.job] = segment.end_iteration;
      free_us[segment.lane] = segment.end_us;
    }
    for (size_t i = 0; i < done.size(); ++i) {
      EXPECT_EQ(done[i], static_cast<double>(outcome.jobs[i].job.iterations)) << policy;
    }
  }
}

TEST(EngineTest, AJobThatCannotFitIsNamed) {
  Experiment experiment;
  experiment.jobs = {Loop(0, 10, 10), Loop(0, 10, 10)};
  experiment.jobs[1].ephemeral_mib = 20'000;
  const Outcome outcome = Simulated(experiment);
  EXPECT_GE(outcome.jobs[0].end_us, 0);
  EXPECT_EQ(outcome.jobs[1].end_us, -1);
  EXPECT_NE(outcome.jobs[1].reason, "");
  EXPECT_EQ(Summarise(outcome).rejected, 1);
}

TEST(EngineTest, MoreMemoryThanTheDeviceHasIsSwapped) {
  Experiment experiment;
  experiment.policy = "fair";
  for (int i = 0; i < 8; ++i) experiment.jobs.push_back(Loop(0, 400, 100));
  for (Job& job : experiment.jobs) job.persistent_mib = 3000;
  experiment.device.memory_mib = 8192;
  const Outcome outcome = Simulated(experiment);
  EXPECT_EQ(Summarise(outcome).jobs, 8);
  EXPECT_GT(outcome.swaps, 0);
  for (const MemoryPoint& point : outcome.memory) {
    EXPECT_LE(point.persistent_bytes + point.lane_bytes, outcome.capacity_bytes);
  }
}

TEST(EngineTest, RequestsWaitForTheirTurnAndForNothingElse) {
  Experiment experiment;
  experiment.policy = "fair";
  experiment.jobs = {Loop(0, 50, 10)};
  experiment.jobs[0].request_ms = 1000;
  const Outcome alone = Simulated(experiment);
  ASSERT_EQ(alone.jobs[0].latency_us.size(), 50u);
  EXPECT_NEAR(Summarise(alone).latency_ms.p50, 10, 0.2);
  EXPECT_LT(alone.busy_us / 1e6, 0.6);
}

TEST(EngineTest, TheSameSetupGivesTheSameOutcome) {
  Experiment experiment;
  experiment.policy = "fair";
  for (int i = 0; i < 20; ++i) experiment.jobs.push_back(Loop(i, 50, 20 + i));
  experiment.jobs[3].request_ms = 100;
  const Outcome one = Simulated(experiment);
  const Outcome two = Simulated(experiment);
  EXPECT_EQ(one.events, two.events);
  for (size_t i = 0; i < one.jobs.size(); ++i) EXPECT_EQ(one.jobs[i].end_us, two.jobs[i].end_us);
}

TEST(EngineTest, UnknownPoliciesAreNamed) {
  Experiment experiment;
  experiment.policy = "best";
  experiment.jobs = {Loop(0, 1, 1)};
  const absl::Status status = Simulate(experiment).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message().substr(0, 40), "there is no policy 'best'; policies are ");
}

TEST(EngineTest, LearnedDurationsComeFromEarlierRuns) {
  Experiment experiment;
  experiment.policy = "srtf";
  experiment.knowledge = Knowledge::kLearned;
  experiment.jobs = {Loop(0, 10, 100), Loop(0.01, 100, 100),  // the first runs of both commands
                     Loop(20, 100, 100), Loop(20.05, 10, 100)};
  for (size_t i = 0; i < 4; ++i) {
    experiment.jobs[i].command = experiment.jobs[i].iterations == 10 ? "short" : "long";
  }
  const Outcome outcome = Simulated(experiment);
  EXPECT_NEAR(Jct(outcome, 3), 1.05, 0.02) << "known to be short, it goes first";
  EXPECT_NEAR(Jct(outcome, 2), 11, 0.02);
}

}  // namespace
}  // namespace sim
