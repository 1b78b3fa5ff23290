// The wait for a daemon's socket, over real directories.
#include "shim/next_daemon.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "ipc/socket.h"
#include "tests/ipc/testing.h"

namespace shim {
namespace {

constexpr int64_t kLongUs = 60'000'000;

TEST(NextDaemonTest, AListeningSocketEndsTheWaitAndCanBeConnectedTo) {
  const ipc::TemporaryDir dir;
  const std::string path = dir.path() + "/d.sock";
  NextDaemon next(dir.path());
  ipc::UniqueFd listener;
  std::jthread daemon([&] { listener = std::move(*ipc::ListenAt(path)); });
  absl::StatusOr<ipc::UniqueFd> connected = absl::NotFoundError("not asked yet");
  while (!connected.ok()) {
    ASSERT_TRUE(next.Wait(kLongUs));
    connected = ipc::ConnectTo(path);
    // The first change may be the temporary socket; the one that names `path` comes behind it.
    EXPECT_TRUE(connected.ok() || absl::IsNotFound(connected.status()));
  }
}

TEST(NextDaemonTest, AFileThatIsRenamedIntoTheDirectoryIsAChange) {
  const ipc::TemporaryDir dir, elsewhere;
  std::ofstream(elsewhere.path() + "/d.sock").put('x');
  NextDaemon next(dir.path());
  std::filesystem::rename(elsewhere.path() + "/d.sock", dir.path() + "/d.sock");
  EXPECT_TRUE(next.Wait(ipc::kSecondUs));
}

TEST(NextDaemonTest, AChangeBeforeTheWaitIsNotMissed) {
  const ipc::TemporaryDir dir;
  NextDaemon next(dir.path());
  const ipc::UniqueFd listener = std::move(*ipc::ListenAt(dir.path() + "/d.sock"));
  EXPECT_TRUE(next.Wait(kLongUs));
  EXPECT_FALSE(next.Wait(0)) << "one change was told twice";
}

TEST(NextDaemonTest, WithoutAChangeOrADirectoryTheTimeIsTheEnd) {
  const ipc::TemporaryDir dir;
  EXPECT_FALSE(NextDaemon(dir.path()).Wait(1000));
  EXPECT_FALSE(NextDaemon(dir.path() + "/absent").Wait(1000));
}

}  // namespace
}  // namespace shim
