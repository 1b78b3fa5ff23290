#include "daemon/control/job_commands.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/daemon/control/testing.h"

namespace control {
namespace {

constexpr char kOk[] = R"({"ok":true})";

class JobCommandsTest : public ::testing::Test {
 protected:
  Session* Add(uint64_t id, uint64_t job) {
    scheduler_.Apply(scheduler::SessionArrived{.session = id, .job = job});
    Session* const session = AddRunning(&sessions_, id, 0, 1, &link_);
    session->record.job.number = job;
    return session;
  }
  void SetUp() override { scheduler_.Serve(); }
  static Command Of(const std::string& name, uint64_t job) {
    Command command;
    command.name = name;
    command.id = job;
    return command;
  }

  common::EventLoop loop_;
  SessionTable sessions_;
  Jobs jobs_;
  NoExecutor executor_;
  SchedulerPort scheduler_{"fifo", FewSessions(), &loop_, &executor_, [] { return 1; }};
  Observers observers_{"", {&loop_, &sessions_, &scheduler_.state()}};
  FakeLink link_;
  FakeLink in_process_{true};
  JobCommands commands_{{&sessions_, &jobs_, &scheduler_, &observers_}};
};

TEST_F(JobCommandsTest, PauseTellsWorkerAndSchedulerOfEachSessionOfTheJob) {
  Add(1, 7);
  Add(2, 7);
  Add(3, 8);
  EXPECT_EQ(commands_.Pause(Of("pause", 7)), kOk);
  EXPECT_EQ(link_.sent_to, (std::vector<uint64_t>{1, 2}));
  EXPECT_TRUE(scheduler_.state().Find(2)->paused());
  EXPECT_FALSE(scheduler_.state().Find(3)->paused());
  EXPECT_EQ(sessions_.Find(1)->record.pause, scheduler::Pause::kPaused);
  EXPECT_EQ(commands_.Resume(Of("resume", 7)), kOk);
  EXPECT_FALSE(scheduler_.state().Find(1)->paused());
  EXPECT_EQ(sessions_.Find(1)->record.pause, scheduler::Pause::kNone);
}

// Before lanewayd serves, while it adopts.
class JobCommandsWhileAdoptingTest : public JobCommandsTest {
 protected:
  void SetUp() override {}
};

TEST_F(JobCommandsWhileAdoptingTest, AJobIsResumedThatWasPausedAMomentAgo) {
  scheduler_.Apply(scheduler::SessionAdopted{.arrived = {.session = 1, .job = 7}});
  AddRunning(&sessions_, 1, 0, 1, &link_)->record.job.number = 7;
  EXPECT_EQ(commands_.Pause(Of("pause", 7)), kOk);
  EXPECT_EQ(commands_.Resume(Of("resume", 7)), kOk);
  scheduler_.Serve();
  const scheduler::Session* const session = scheduler_.state().Find(1);
  ASSERT_NE(session, nullptr);
  EXPECT_FALSE(session->paused());
}

TEST_F(JobCommandsTest, NoSessionOfAnInProcessJobIsEvicted) {
  Add(1, 7);
  Add(2, 7)->link = &in_process_;
  EXPECT_NE(commands_.Pause(Of("evict", 7)).find("can't leave the device"), std::string::npos);
  EXPECT_TRUE(link_.sent_to.empty());
  EXPECT_EQ(commands_.Pause(Of("pause", 7)), kOk);
}

TEST_F(JobCommandsTest, WhatCannotBeSteeredIsSaid) {
  EXPECT_NE(commands_.Pause(Of("pause", 7)).find("there is no job 7"), std::string::npos);
  Add(1, 7)->phase = Phase::kEnding;
  EXPECT_NE(commands_.Limit(Of("limit", 7)).find("job 7 has ended"), std::string::npos);
  Add(2, 8);
  EXPECT_NE(commands_.Resume(Of("resume", 8)).find("job 8 is not paused"), std::string::npos);
}

TEST_F(JobCommandsTest, TheSessionsOfAJobShareItsLimit) {
  Add(1, 7);
  Add(2, 7);
  Command limit = Of("limit", 7);
  limit.bytes = 1000;
  EXPECT_EQ(commands_.Limit(limit), kOk);
  EXPECT_EQ(scheduler_.state().Find(1)->about.limit_bytes, 500);
  EXPECT_EQ(sessions_.Find(2)->record.job.memory_limit_bytes, 1000u);
  EXPECT_EQ(link_.sent_to, (std::vector<uint64_t>{1, 2}));
}

TEST_F(JobCommandsTest, TermsAreCheckedAndReachTheScheduler) {
  Add(1, 7);
  Command share = Of("share", 7);
  share.value = 0;
  EXPECT_NE(commands_.Terms(share).find("a weight is 1 to"), std::string::npos);
  share.value = 50;
  EXPECT_EQ(commands_.Terms(share), kOk);
  EXPECT_EQ(scheduler_.state().Find(1)->about.weight, 50);
  Command priority = Of("priority", 7);
  priority.value = 0;
  EXPECT_EQ(commands_.Terms(priority), kOk);
  EXPECT_EQ(scheduler_.state().Find(1)->about.priority, 0u);
}

TEST_F(JobCommandsTest, OnlyAKnownPolicyIsSet) {
  Command policy = Of("policy", 0);
  policy.text = "none";
  EXPECT_NE(commands_.Policy(policy).find("there is no policy none"), std::string::npos);
  policy.text = "fair";
  EXPECT_NE(commands_.Policy(policy).find(R"("policy":"fair")"), std::string::npos);
  policy.text = "";
  EXPECT_NE(commands_.Policy(policy).find(R"("policy":"fair")"), std::string::npos);
}

}  // namespace
}  // namespace control
