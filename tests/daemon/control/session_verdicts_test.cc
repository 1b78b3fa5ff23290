#include "daemon/control/session_verdicts.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "daemon/control/session_files.h"
#include "ipc/client_words.h"
#include "ipc/state_dir.h"
#include "ipc/verdict_area.h"
#include "tests/daemon/control/testing.h"

namespace control {
namespace {

constexpr ipc::ReplayVerdict kSessionFaster{.body = 7, .permille = 700, .replays = 1};
constexpr ipc::ReplayVerdict kSessionSlower{.body = 8, .permille = 1200, .replays = 0};

class SessionVerdictsTest : public ::testing::Test {
 protected:
  SessionVerdictsTest() {
    char dir[] = "/tmp/laneway-verdicts-XXXXXX";
    dir_ = mkdtemp(dir);
  }
  ~SessionVerdictsTest() override { std::filesystem::remove_all(dir_); }

  std::string path() const { return dir_ + "/replay_verdicts"; }

  // A session with the files that its client would have.
  Session* Start(SessionVerdicts* verdicts, uint64_t id) {
    Session* const session = sessions_.Add({.session_id = id}, AnyLink());
    verdicts->Begin(*session);
    EXPECT_TRUE(MakeWorkerFiles(session).ok());
    verdicts->Give(*session);
    return session;
  }
  static ipc::SessionFile MapOf(const Session& session) {
    absl::StatusOr<ipc::SessionFile> file = ipc::SessionFile::Map(session.fds.file.get());
    EXPECT_TRUE(file.ok());
    return *std::move(file);
  }
  static std::vector<ipc::ReplayVerdict> KnownTo(const Session& session) {
    const ipc::SessionFile file = MapOf(session);
    const ipc::VerdictArea& area = *file.verdicts();
    return {area.known, area.known + area.known_count};
  }
  static void Tell(const Session& session, const ipc::ReplayVerdict& verdict, uint64_t kind) {
    const ipc::SessionFile file = MapOf(session);
    std::atomic<uint32_t>& told = ipc::ClientWordsOf(file.page())->verdicts_told;
    file.verdicts()->told[told.load() % ipc::VerdictArea::kTold] = {verdict, kind};
    ++told;
  }
  // The verdicts that a later lanewayd gives to a session.
  std::vector<ipc::ReplayVerdict> KnownLater() {
    SessionVerdicts later(dir_);
    return KnownTo(*Start(&later, 1000 + ++later_));
  }

  std::string dir_;
  SessionTable sessions_;
  uint64_t later_ = 0;
};

TEST_F(SessionVerdictsTest, WhatASessionMeasuresTheNextOneKnows) {
  SessionVerdicts verdicts(dir_);
  const Session* const first = Start(&verdicts, 1);
  EXPECT_TRUE(KnownTo(*first).empty());
  Tell(*first, kSessionFaster, ipc::ToldVerdict::kMeasured);
  verdicts.Read(*first, 10);
  EXPECT_EQ(KnownTo(*Start(&verdicts, 2)), std::vector{kSessionFaster});
  EXPECT_TRUE(KnownTo(*first).empty()) << "it goes by what it has measured itself";
}

TEST_F(SessionVerdictsTest, VerdictsOutliveLanewayd) {
  SessionVerdicts verdicts(dir_);
  const Session* const session = Start(&verdicts, 1);
  Tell(*session, kSessionFaster, ipc::ToldVerdict::kMeasured);
  verdicts.Read(*session, 10);
  Tell(*session, kSessionSlower, ipc::ToldVerdict::kMeasured);
  verdicts.Read(*session, 11);
  verdicts.Save();
  struct stat info;
  ASSERT_EQ(stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(KnownLater(), (std::vector{kSessionFaster, kSessionSlower}));
}

TEST_F(SessionVerdictsTest, StartsThatTakeAVerdictCount) {
  SessionVerdicts verdicts(dir_);
  Tell(*Start(&verdicts, 1), kSessionFaster, ipc::ToldVerdict::kMeasured);
  verdicts.Read(*sessions_.Find(1), 10);
  for (uint64_t i = 0; i < ReplayVerdicts::kFirstStarts; ++i) {
    const Session* const session = Start(&verdicts, 2 + i);
    ASSERT_EQ(KnownTo(*session).size(), 1u) << i;
    Tell(*session, kSessionFaster, ipc::ToldVerdict::kTaken);
    verdicts.Read(*session, 11);
  }
  EXPECT_TRUE(KnownTo(*Start(&verdicts, 500)).empty()) << "this start measures";
}

// The client writes numbers that are no verdict, and its count turns over.
TEST_F(SessionVerdictsTest, AClientMayWriteAnything) {
  SessionVerdicts verdicts(dir_);
  const Session* const session = Start(&verdicts, 1);
  Tell(*session, {.body = 0, .permille = 1, .replays = 1}, ipc::ToldVerdict::kMeasured);
  Tell(*session, {.body = 1, .permille = 0, .replays = 1}, ipc::ToldVerdict::kMeasured);
  Tell(*session, {.body = 1, .permille = 1, .replays = 2}, ipc::ToldVerdict::kMeasured);
  Tell(*session, {.body = 1, .permille = ~0u, .replays = 0}, ipc::ToldVerdict::kMeasured);
  Tell(*session, kSessionFaster, 3);
  Tell(*session, kSessionFaster, ipc::ToldVerdict::kTaken);
  verdicts.Read(*session, 1);
  EXPECT_EQ(verdicts.size(), 0u);
  Tell(*session, kSessionFaster, ipc::ToldVerdict::kMeasured);
  ipc::ClientWordsOf(session->page.get())->verdicts_told += 1u << 31;
  verdicts.Read(*session, 1);
  EXPECT_EQ(verdicts.size(), 1u);
}

TEST_F(SessionVerdictsTest, WhatWasToldToAnotherLanewaydIsNotTakenAgain) {
  SessionVerdicts before(dir_), verdicts("");
  const Session* const session = Start(&before, 1);
  Tell(*session, kSessionFaster, ipc::ToldVerdict::kMeasured);
  verdicts.Begin(*session);
  verdicts.Read(*session, 1);
  EXPECT_EQ(verdicts.size(), 0u);
  verdicts.End(*session);
  Tell(*session, kSessionFaster, ipc::ToldVerdict::kMeasured);
  verdicts.Read(*session, 1);
  EXPECT_EQ(verdicts.size(), 0u) << "the session has ended";
}

TEST_F(SessionVerdictsTest, TwoDaemonsKeepWhatEachHasLearned) {
  SessionVerdicts one(dir_), other(dir_);
  const Session* const first = Start(&one, 1);
  const Session* const second = Start(&other, 2);
  Tell(*first, kSessionFaster, ipc::ToldVerdict::kMeasured);
  one.Read(*first, 10);
  Tell(*second, kSessionSlower, ipc::ToldVerdict::kMeasured);
  other.Read(*second, 10);
  one.Save();
  other.Save();
  EXPECT_EQ(KnownLater(), (std::vector{kSessionFaster, kSessionSlower}));
}

// --- files that are none of ours -----------------------------------------------------------------

// Learns something and saves it, over whatever lies there.
void LearnAndSave(SessionVerdicts* verdicts, const Session& session) {
  const ipc::SessionFile file = *ipc::SessionFile::Map(session.fds.file.get());
  file.verdicts()->told[0] = {kSessionFaster, ipc::ToldVerdict::kMeasured};
  ipc::ClientWordsOf(file.page())->verdicts_told = 1;
  verdicts->Read(session, 5);
  verdicts->Save();
}

TEST_F(SessionVerdictsTest, ADamagedFileIsReplaced) {
  ASSERT_TRUE(ipc::WriteWhole(path(), "LNWVRDS\n of yesterday").ok());
  SessionVerdicts verdicts(dir_);
  EXPECT_EQ(verdicts.size(), 0u);
  LearnAndSave(&verdicts, *Start(&verdicts, 1));
  EXPECT_EQ(KnownLater(), std::vector{kSessionFaster});
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_), {}), 1) << "nothing is left";
}

TEST_F(SessionVerdictsTest, AFileThatIsTooLongIsReplaced) {
  ASSERT_TRUE(ipc::WriteWhole(path(), std::string(ReplayVerdicts::kFileBytesMax + 1, 'x')).ok());
  SessionVerdicts verdicts(dir_);
  LearnAndSave(&verdicts, *Start(&verdicts, 1));
  EXPECT_EQ(KnownLater(), std::vector{kSessionFaster});
}

TEST_F(SessionVerdictsTest, ALinkIsNeitherReadNorReplaced) {
  {
    SessionVerdicts verdicts(dir_);
    LearnAndSave(&verdicts, *Start(&verdicts, 1));
  }
  std::filesystem::rename(path(), dir_ + "/elsewhere");
  std::filesystem::create_symlink(dir_ + "/elsewhere", path());
  SessionVerdicts verdicts(dir_);
  EXPECT_EQ(verdicts.size(), 0u);
  LearnAndSave(&verdicts, *Start(&verdicts, 2));
  EXPECT_TRUE(std::filesystem::is_symlink(path()));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_), {}), 2) << "nothing is left";
}

TEST_F(SessionVerdictsTest, AnotherUsersFileIsNeitherReadNorReplaced) {
  {
    SessionVerdicts verdicts(dir_);
    LearnAndSave(&verdicts, *Start(&verdicts, 1));
  }
  if (chown(path().c_str(), 12345, 12345) != 0) return;  // only root can give away
  SessionVerdicts verdicts(dir_);
  EXPECT_EQ(verdicts.size(), 0u);
  LearnAndSave(&verdicts, *Start(&verdicts, 2));
  struct stat info;
  ASSERT_EQ(stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 12345u);
}

}  // namespace
}  // namespace control
