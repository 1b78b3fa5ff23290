#include "daemon/control/history.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/socket.h"
#include "ipc/state_dir.h"
#include "tests/ipc/testing.h"

namespace control {
namespace {

class HistoryTest : public ::testing::Test {
 protected:
  std::vector<ipc::HistoryRecord> Records() const {
    const absl::StatusOr<std::string> text =
        ipc::ReadBounded(dir_.path() + "/state/history.jsonl", ipc::kHistoryBytesMax);
    return text.ok() ? ipc::ReadHistoryUntrusted(*text).records : std::vector<ipc::HistoryRecord>();
  }
  // A session of this very process, which is a command like any other.
  static void Run(History* history, uint64_t session, uint64_t job, uint64_t iterations) {
    history->Begin(session, job, getpid(), {1'000'000, 100});
    history->Read(session, {iterations, iterations * 1000, 500, 1 << 20, 1 << 19, 1});
    history->EndOfReadings({1'500'000, 100});
    TimeCounts times = {};
    times[ipc::BucketOf(1000)] = static_cast<uint32_t>(iterations);
    history->End(session, times, "", {3'000'000, 102});
  }

  const ipc::TemporaryDir dir_;
  const std::string state_ = dir_.path() + "/state";
};

TEST_F(HistoryTest, AJobEndsWithItsLastSession) {
  History history(state_);
  history.Begin(2, 7, getpid(), {0, 100});
  Run(&history, 1, 7, 10);
  EXPECT_TRUE(Records().empty());
  history.End(2, {}, "", {4'000'000, 103});
  const std::vector<ipc::HistoryRecord> records = Records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].sessions, 2u);
  EXPECT_EQ(records[0].iterations, 10u);
  EXPECT_EQ(records[0].ran_us, 4'000'000u);
  EXPECT_EQ(records[0].waited_us, 500u);
  EXPECT_EQ(records[0].peak_bytes, (1u << 20) + (1u << 19));
  EXPECT_NEAR(static_cast<double>(records[0].p50_us), 1000, 64);
  EXPECT_EQ(records[0].exit, ipc::kExitUnknown);
  EXPECT_NE(records[0].command.find("control_test"), std::string::npos);
  EXPECT_TRUE(history.quiet());
}

// The client writes its readings itself, so they may be anything.
TEST_F(HistoryTest, SumsOfHugeReadingsDoNotWrap) {
  constexpr uint64_t kHuge = ~uint64_t{0};
  History history(state_);
  history.Begin(1, 7, getpid(), {0, 100});
  history.Begin(2, 7, getpid(), {0, 100});
  history.Read(1, {kHuge, kHuge, kHuge, kHuge, 2, 1});
  history.Read(2, {2, kHuge, 2, 2, 2, 1});
  history.End(1, {}, "", {1, 100});
  history.End(2, {}, "", {1, 100});
  const std::vector<ipc::HistoryRecord> records = Records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_GT(records[0].iterations, 2u);
  EXPECT_GT(records[0].waited_us, 2u);
  EXPECT_GT(records[0].peak_bytes, 4u);
}

TEST_F(HistoryTest, AJobOfRunEndsWithItsProgram) {
  History history(state_);
  history.Launched(7, "python3 train.py", ipc::UniqueFd());
  Run(&history, 1, 7, 10);
  EXPECT_TRUE(Records().empty());  // the program may make another session
  history.Exited(7, 3, {4'000'000, 104});
  EXPECT_FALSE(history.HasPrograms());
  history.Launched(8, "no session", *ipc::OpenPidfd(getpid()));
  EXPECT_TRUE(history.HasPrograms());
  history.Exited(8, 0, {4'000'000, 104});
  EXPECT_FALSE(history.HasPrograms());
  const std::vector<ipc::HistoryRecord> records = Records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].command, "python3 train.py");
  EXPECT_EQ(records[0].exit, 3);
  EXPECT_EQ(history.profiles().size(), 0u);  // a run that failed teaches nothing
}

TEST_F(HistoryTest, TheNextDaemonKnowsWhatWasLearned) {
  {
    History history(state_);
    Run(&history, 1, 7, 10);
    history.EndOfReadings({4'000'000, 105});
  }
  History history(state_);
  history.Begin(1, 1, getpid(), {0, 200});
  const CommandProfile* const known = history.KnownOf(1);
  ASSERT_NE(known, nullptr);
  EXPECT_EQ(known->needs.iterations, 10);
  EXPECT_EQ(known->needs.iteration_us, 1000);
  EXPECT_EQ(known->needs.persistent_bytes, 1 << 20);
  EXPECT_EQ(history.KnownOf(2), nullptr);
}

TEST_F(HistoryTest, WhoRunsBesideWhomIsMeasured) {
  History history(state_);
  int pipe_fds[2];
  ASSERT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
  const pid_t other = fork();
  if (other == 0) {
    execl("/bin/sleep", "sleep", "100", static_cast<char*>(nullptr));
    _exit(1);
  }
  close(pipe_fds[1]);
  char none = 0;
  ASSERT_EQ(read(pipe_fds[0], &none, 1), 0);  // its end is closed: it is the other program now
  close(pipe_fds[0]);
  ASSERT_GT(other, 0);
  history.Begin(1, 1, getpid(), {0, 100});
  const auto look = [&](uint64_t session, uint64_t iterations, uint64_t us, uint64_t lane) {
    history.Read(session, {iterations, us, 0, 0, 0, lane});
  };
  look(1, 10, 10'000, 1);  // alone: 1 ms
  history.EndOfReadings({1, 100});
  history.Begin(2, 2, other, {0, 100});
  look(1, 20, 25'000, 1);  // beside the other: 1.5 ms
  look(2, 10, 20'000, 2);
  history.EndOfReadings({2, 100});
  look(1, 30, 40'000, 1);  // in one lane: not beside
  look(2, 20, 40'000, 1);
  history.EndOfReadings({3, 100});
  history.End(2, {}, "", {4, 100});
  history.End(1, {}, "", {4, 100});
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  history.Begin(3, 3, getpid(), {5, 101});
  const CommandProfile* const known = history.KnownOf(3);
  ASSERT_NE(known, nullptr);
  EXPECT_EQ(known->needs.iteration_us, 1250);  // of both times without another beside it
  ASSERT_EQ(known->beside.size(), 1u);
  EXPECT_EQ(known->beside.begin()->second.permille, 1200);
}

TEST_F(HistoryTest, BesideTwoOthersNothingIsMeasured) {
  History history(state_);
  for (uint64_t id = 1; id <= 3; ++id) history.Begin(id, id, getpid(), {0, 100});
  history.Read(1, {10, 10'000, 0, 0, 0, 1});  // alone: 1 ms
  history.EndOfReadings({1, 100});
  history.Read(1, {20, 30'000, 0, 0, 0, 1});  // beside two: 2 ms
  history.Read(2, {10, 20'000, 0, 0, 0, 2});
  history.Read(3, {10, 20'000, 0, 0, 0, 3});
  history.EndOfReadings({2, 100});
  history.End(1, {}, "", {3, 100});
  history.Begin(4, 4, getpid(), {4, 100});
  const CommandProfile* const known = history.KnownOf(4);
  ASSERT_NE(known, nullptr);
  EXPECT_EQ(known->needs.iteration_us, 1000);
  EXPECT_TRUE(known->beside.empty());
}

TEST_F(HistoryTest, AFaultIsNotedAndTeachesNothing) {
  History history(state_);
  history.Begin(1, 1, getpid(), {0, 100});
  history.Read(1, {10, 10'000, 0, 0, 0, 1});
  history.End(1, {}, "error 700: illegal address", {4, 100});
  ASSERT_EQ(Records().size(), 1u);
  EXPECT_EQ(Records()[0].note, "error 700: illegal address");
  EXPECT_EQ(history.profiles().size(), 0u);
}

TEST_F(HistoryTest, WhatRunsWhenTheDaemonIsReplacedIsTheNextOnes) {
  History history(state_);
  history.Begin(1, 1, getpid(), {0, 100});
  history.CloseAll(false, {1, 100});
  EXPECT_TRUE(Records().empty());
  history.Begin(1, 1, getpid(), {0, 100});
  history.CloseAll(true, {1, 100});
  ASSERT_EQ(Records().size(), 1u);
  EXPECT_NE(Records()[0].note.find("stopped"), std::string::npos);
}

TEST_F(HistoryTest, AFullDiskLosesLinesAndNothingElse) {
  {
    History history(state_);
    Run(&history, 1, 1, 10);
    history.EndOfReadings({4, 100});
  }
  const size_t bytes = ipc::ReadBounded(state_ + "/history.jsonl", ipc::kHistoryBytesMax)->size();
  const pid_t child = fork();
  if (child == 0) {  // files may grow by a part of a line
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes + 10, bytes + 10};
    setrlimit(RLIMIT_FSIZE, &limit);
    History history(state_);
    for (uint64_t job = 2; job < 5; ++job) Run(&history, job, job, 10);
    history.EndOfReadings({5, 100});
    _exit(history.quiet() && history.profiles().size() == 1 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(Records().size(), 1u);
  History history(state_);
  EXPECT_EQ(history.profiles().size(), 1u);  // the old file is whole
  Run(&history, 9, 9, 10);
  EXPECT_EQ(Records().size(), 2u);
}

TEST_F(HistoryTest, WhatAnotherDaemonHasLearnedMeanwhileIsKept) {
  History history(state_);
  CommandProfiles theirs;
  theirs.Learn(1, "another command", {10, 1000, 10'000, 0, 0}, 100);
  ASSERT_TRUE(ipc::WriteWhole(state_ + "/learned.jsonl", theirs.Encode()).ok());
  Run(&history, 1, 1, 10);
  history.EndOfReadings({4, 100});
  const History next(state_);
  EXPECT_EQ(next.profiles().size(), 2u);
  EXPECT_NE(next.profiles().Find(1), nullptr);
}

TEST_F(HistoryTest, AForeignFileIsTakenForAnEmptyOne) {
  ASSERT_TRUE(ipc::WriteWhole(state_ + "/learned.jsonl", std::string(1000, '\xff')).ok());
  History history(state_);
  Run(&history, 1, 1, 10);
  history.EndOfReadings({4, 100});
  EXPECT_EQ(History(state_).profiles().size(), 1u);
}

}  // namespace
}  // namespace control
