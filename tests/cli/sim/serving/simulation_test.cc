#include "cli/sim/serving/simulation.h"

#include <gtest/gtest.h>

namespace sim::serving {
namespace {

using scheduler::batching::iteration::Options;

Costs Flat() { return *Costs::Parse("kind,size,ms\nstep,1,10\nprompt,2,30\nprompt,99,30\n", "t"); }

std::vector<TracedRequest> Two() {
  std::vector<TracedRequest> two(2);
  two[0] = {0, 5, 3, {}};
  two[1] = {1'000, 5, 1, {}};
  return two;
}

TEST(SimulationTest, AStepAfterTheOther) {
  const Served served = Serve("orca", Options(), Engine(), Flat(), Two());
  // Steps end at 30 ms (prompt of the first), 60 (prompt of the second), and 70.
  EXPECT_EQ(served.token_ms, (std::vector<double>{59, 70.0 / 3}));
  EXPECT_EQ(served.first_ms, (std::vector<double>{59, 30}));
  EXPECT_EQ(served.next_ms, (std::vector<double>{20}));
  EXPECT_DOUBLE_EQ(served.seconds, 0.07);
}

TEST(SimulationTest, APipelineTakesAStepPerStage) {
  Engine engine;
  engine.stages = 2;
  const Served served = Serve("orca", Options(), engine, Flat(), Two());
  // The second request's prompt enters the first stage at 15 ms, when the other has left it.
  EXPECT_EQ(served.token_ms.at(0), 44);
  EXPECT_EQ(served.first_ms.at(1), 30);
}

TEST(SimulationTest, WholeRequestsWaitForEachOther) {
  const Served served = Serve("padded", Options(), Engine(), Flat(), Two());
  EXPECT_EQ(served.token_ms, (std::vector<double>{50.0 / 3, 79}));
}

TEST(SimulationTest, PromptsShareWhatTheTraceSays) {
  std::vector<TracedRequest> requests(2);
  requests[0] = {0, 600, 1, {4, 5}};
  requests[1] = {1'000'000'000, 600, 1, {4, 6}};
  const Served served = Serve("budget", Options(), Engine(), Flat(), requests);
  EXPECT_EQ(served.counters.prefix_hit_tokens, 512);
}

TEST(SimulationTest, QuantilesAreValues) {
  EXPECT_EQ(Quantile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(Quantile({3, 1, 2}, 1), 3);
  EXPECT_EQ(Quantile({}, 0.5), 0);
}

// Orca, section 4.5.2: iteration-level scheduling has a multiple of the throughput of batches by
// request at a latency of 150 ms per token, on the published times of a comparable model.
TEST(SimulationTest, OrcaServesSeveralTimesWhatPaddedDoes) {
  const absl::StatusOr<Costs> costs = Costs::Read(LANEWAY_EXAMPLES "/bloom_176b_a100.csv");
  ASSERT_TRUE(costs.ok()) << costs.status();
  PoissonPlan plan;
  plan.requests = 600;
  plan.per_s = 3;
  Options options;
  options.answers_max = 64;
  const Served orca = Serve("orca", options, Engine(), *costs, GenerateRequests(plan));
  EXPECT_LT(Quantile(orca.token_ms, 0.5), 150);
  plan.per_s = 1;
  options.answers_max = 8;
  const Served padded = Serve("padded", options, Engine(), *costs, GenerateRequests(plan));
  EXPECT_GT(Quantile(padded.token_ms, 0.5), 150);
}

}  // namespace
}  // namespace sim::serving
