#include "cli/sim/output.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/sim/html.h"

namespace sim {
namespace {

Outcome Example() {
  Outcome outcome;
  outcome.policy = "fair";
  JobOutcome job;
  job.job.name = "a <b>";
  job.job.iterations = 10;
  job.job.iteration_ms = 100;
  job.first_run_us = 0;
  job.end_us = 2'000'000;
  job.latency_us = {150'000, 250'000};
  outcome.jobs = {job, job};
  outcome.jobs[1].end_us = -1;
  outcome.jobs[1].reason = "does not fit";
  outcome.end_us = 2'000'000;
  outcome.busy_us = 1'000'000;
  outcome.capacity_bytes = int64_t{1} << 30;
  outcome.lanes_max = 1;
  outcome.segments = {{0, 3, Doing::kIterating, 0, 1'000'000, 0, 5},
                      {1, 3, Doing::kIterating, 1'000'000, 1'500'000, 0, 2},
                      {1, 0, Doing::kSwapping, 1'500'000, 1'600'000, 2, 2}};
  outcome.memory = {{0, 1 << 20, 2 << 20}, {1'000'000, 4 << 20, 2 << 20}};
  return outcome;
}

TEST(OutputTest, TextHasALinePerPolicy) {
  const std::string text = SummaryText({Summarise(Example())});
  for (const char* const word :
       {"fair", "2 s", "50.0 %", "REQUEST ALONE", "200 ms", "1 jobs did not come to their end"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
  }
  EXPECT_NE(JobsTableText(Example()).find("does not fit"), std::string::npos);
}

TEST(OutputTest, JsonHasEveryJob) {
  const nlohmann::json json =
      nlohmann::json::parse(SummaryJson({Summarise(Example())}, {Example()}));
  const nlohmann::json& policy = json["policies"][0];
  EXPECT_EQ(policy["policy"], "fair");
  EXPECT_EQ(policy["jobs_rejected"], 1);
  EXPECT_EQ(policy["jobs"].size(), 2u);
  EXPECT_EQ(policy["jobs"][0]["jct_s"], 2.0);
  EXPECT_EQ(policy["jobs"][1].count("jct_s"), 0u);
  EXPECT_EQ(policy["latency_ms"]["mean"], 200.0);
}

TEST(OutputTest, PerfettoHasASlicePerTurn) {
  const nlohmann::json json = nlohmann::json::parse(PerfettoJson({Example()}));
  size_t slices = 0;
  size_t counters = 0;
  for (const nlohmann::json& event : json["traceEvents"]) {
    slices += event["ph"] == "X";
    counters += event["ph"] == "C";
    if (event["ph"] == "X" && event["name"] == "a <b>" && event["ts"] == 0) {
      EXPECT_EQ(event["dur"], 1'000'000);
      EXPECT_EQ(event["tid"], 3);
    }
  }
  EXPECT_EQ(slices, 3u);
  EXPECT_EQ(counters, 2u);
}

TEST(OutputTest, HtmlDrawsLanesJobsMemoryAndCompletions) {
  const std::string html = OutcomesHtml("t", {Example()});
  for (const char* const word : {"Who held a lane", "Jobs, in the order of arrival",
                                 "Device memory", "Completion times", "a &lt;b&gt;"}) {
    EXPECT_NE(html.find(word), std::string::npos) << word;
  }
  EXPECT_EQ(html.find("a <b>"), std::string::npos);
}

}  // namespace
}  // namespace sim
