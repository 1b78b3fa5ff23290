#include "cli/sim/jobs_csv.h"

#include <gtest/gtest.h>

namespace sim {
namespace {

std::string ErrorOf(const std::string& text) {
  return std::string(ParseJobs(text, "jobs.csv").status().message());
}

TEST(JobsCsvTest, ColumnsInAnyOrder) {
  const absl::StatusOr<std::vector<Job>> jobs = ParseJobs(
      "# a comment\n"
      "iteration_ms,name,arrival_s,iterations,user,persistent_mib,priority\n"
      "\n"
      "12.5, train ,3,100,ann,512,0\r\n"
      "20,\"a \"\"b\"\", c\",0,1,,,\n",
      "jobs.csv");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 2u);
  EXPECT_EQ((*jobs)[0].name, "train");
  EXPECT_EQ((*jobs)[0].user, "ann");
  EXPECT_EQ((*jobs)[0].iteration_ms, 12.5);
  EXPECT_EQ((*jobs)[0].iterations, 100);
  EXPECT_EQ((*jobs)[0].persistent_mib, 512);
  EXPECT_EQ((*jobs)[0].priority, 0);
  EXPECT_EQ((*jobs)[0].AloneSeconds(), 1.25);
  EXPECT_EQ((*jobs)[1].name, "a \"b\", c");
  EXPECT_EQ((*jobs)[1].priority, 1) << "an empty cell is the default";
  EXPECT_EQ((*jobs)[1].busy_percent, 100);
}

TEST(JobsCsvTest, ErrorsNameTheLineAndTheRemedy) {
  const std::string head = "arrival_s,iterations,iteration_ms\n";
  EXPECT_EQ(ErrorOf(head + "0,1,2\n0,1x,2\n"),
            "jobs.csv:3: iterations is not a whole number: '1x'");
  EXPECT_EQ(ErrorOf(head + "0,1.5,2\n"), "jobs.csv:2: iterations is not a whole number: '1.5'");
  EXPECT_EQ(ErrorOf(head + "0,,2\n"), "jobs.csv:2: iterations is not a whole number: ''");
  EXPECT_EQ(ErrorOf(head + "0,0,2\n"),
            "jobs.csv:2: iterations is 0, not between 1 and 1000000000000000");
  EXPECT_EQ(ErrorOf(head + "-1,1,2\n"),
            "jobs.csv:2: arrival_s is -1, not between 0 and 1000000000");
  EXPECT_EQ(ErrorOf(head + "nan,1,2\n"), "jobs.csv:2: arrival_s is not a number: 'nan'");
  EXPECT_EQ(ErrorOf(head + "0,1\n"), "jobs.csv:2: 2 cells where the head line has 3 columns");
  EXPECT_EQ(ErrorOf(head + "0,1,\"2\n"), "jobs.csv:2: a quote is not closed");
  EXPECT_EQ(ErrorOf(head), "jobs.csv:2: there are no jobs");
  EXPECT_EQ(ErrorOf("arrival_s,iterations\n"), "jobs.csv:1: lacks the column iteration_ms");
  EXPECT_EQ(ErrorOf("arrival_s,arrival_s\n"), "jobs.csv:1: the column arrival_s is there twice");
  EXPECT_EQ(ErrorOf("arrival\n").substr(0, 46), "jobs.csv:1: there is no column 'arrival'; colu");
}

TEST(JobsCsvTest, WhatIsWrittenReadsBackTheSame) {
  Job job;
  job.name = "a, \"b\" # c";
  job.command = "python train.py";
  job.arrival_s = 1.0 / 3;
  job.iterations = 7;
  job.iteration_ms = 0.1;
  job.request_ms = 12;
  const std::string text = JobsText({job, Job{"x", "", "", 0, 1, 5}}, "one\ntwo");
  EXPECT_EQ(text.substr(0, 12), "# one\n# two\n");
  EXPECT_EQ(text.find("priority"), std::string::npos) << "nobody differs in it";
  const absl::StatusOr<std::vector<Job>> back = ParseJobs(text, "back");
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->size(), 2u);
  EXPECT_EQ((*back)[0].name, job.name);
  EXPECT_EQ((*back)[0].command, job.command);
  EXPECT_EQ((*back)[0].arrival_s, job.arrival_s);
  EXPECT_EQ((*back)[0].iteration_ms, job.iteration_ms);
  EXPECT_EQ((*back)[0].request_ms, job.request_ms);
}

TEST(JobsCsvTest, AFileThatIsNotThere) {
  EXPECT_EQ(ReadJobs("/nonexistent/jobs.csv").status().message(),
            "cannot read /nonexistent/jobs.csv");
  EXPECT_FALSE(ReadJobs("/").ok());
}

}  // namespace
}  // namespace sim
