#include "daemon/control/run_commands.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/daemon/control/testing.h"

namespace control {
namespace {

class RunCommandsTest : public ::testing::Test {
 protected:
  void SetUp() override { scheduler_.Serve(); }
  nlohmann::json Begin(const Command& command) {
    return nlohmann::json::parse(runs_.Begin(command));
  }

  common::EventLoop loop_;
  FakeChildren children_;
  SessionTable sessions_;
  Jobs jobs_;
  NoExecutor executor_;
  SchedulerPort scheduler_{"fifo", FewSessions(), &loop_, &executor_, [] { return 1; }};
  Observers observers_{"", {&loop_, &sessions_, &scheduler_.state()}};
  JobCommands job_commands_{{&sessions_, &jobs_, &scheduler_, &observers_}};
  RunCommands runs_{{&children_, &sessions_, &jobs_, &observers_, &job_commands_}};
};

TEST_F(RunCommandsTest, ARunWithoutATicketIsAJobOfItsOwn) {
  const nlohmann::json first = Begin({});
  const nlohmann::json second = Begin({});
  EXPECT_EQ(first["ok"], true);
  EXPECT_NE(first["job"], second["job"]);
  EXPECT_NE(first["ticket"], second["ticket"]);
}

TEST_F(RunCommandsTest, ARunWithinAJobHasItsTicketAndMayChangeItsLimit) {
  const nlohmann::json outer = Begin({});
  Command inner;
  inner.ticket = outer["ticket"];
  inner.bytes = 4096;
  const nlohmann::json answer = Begin(inner);
  EXPECT_NE(answer["job"], outer["job"]) << "it has a line of its own in the history";
  const std::optional<ipc::JobTerms> job = jobs_.Find(outer["job"].get<uint64_t>());
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->memory_limit_bytes, 4096u);
}

TEST_F(RunCommandsTest, MoreDevicesThanThereAreAreRefused) {
  Command command;
  command.scheduling.device_count = 2;
  command.scheduling.devices[0] = 0;
  command.scheduling.devices[1] = 5;
  EXPECT_EQ(Begin(command)["ok"], false);
}

TEST_F(RunCommandsTest, AProgramThatHasEndedIsNotWaitedFor) {
  Command command;
  command.pid = static_cast<uint64_t>(getpid());
  const uint64_t run = Begin(command)["job"];
  EXPECT_TRUE(observers_.history().HasPrograms());
  command.id = run;
  EXPECT_EQ(runs_.Exited(command), R"({"ok":true})");
  EXPECT_FALSE(observers_.history().HasPrograms());
}

}  // namespace
}  // namespace control
