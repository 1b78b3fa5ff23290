#include "ipc/runtime_dir.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "tests/ipc/testing.h"

namespace ipc {
namespace {

TEST(RuntimeDirTest, OwnVariableThenXdgThenShm) {
  setenv("LANEWAY_RUNTIME_DIR", "/a/b", 1);
  EXPECT_EQ(RuntimeDir(), "/a/b");
  unsetenv("LANEWAY_RUNTIME_DIR");
  setenv("XDG_RUNTIME_DIR", "/run/user/5", 1);
  EXPECT_EQ(RuntimeDir(), "/run/user/5/laneway");
  unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(RuntimeDir(), "/dev/shm/laneway-" + std::to_string(getuid()));
}

TEST(RuntimeDirTest, IsMadePrivate) {
  const TemporaryDir dir;
  const std::string path = dir.path() + "/deep/run";
  EXPECT_TRUE(absl::IsNotFound(CheckRuntimeDir(path)));
  ASSERT_TRUE(MakeRuntimeDir(path).ok());
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_TRUE(CheckRuntimeDir(path).ok());
  EXPECT_TRUE(MakeRuntimeDir(path).ok());  // again is fine
}

TEST(RuntimeDirTest, OneThatOthersCanEnterIsRefused) {
  const TemporaryDir dir;
  chmod(dir.path().c_str(), 0755);
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckRuntimeDir(dir.path())));
  EXPECT_TRUE(absl::IsFailedPrecondition(MakeRuntimeDir(dir.path())));
}

TEST(RuntimeDirTest, OneOfSomeoneElseIsRefused) {
  const TemporaryDir dir;
  std::string foreign = "/usr", owner = "uid 0";
  if (geteuid() == 0) {
    ASSERT_EQ(chown(dir.path().c_str(), 65534, 65534), 0);
    foreign = dir.path();
    owner = "uid 65534";
  }
  const absl::Status status = MakeRuntimeDir(foreign);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_NE(std::string(status.message()).find(owner), std::string::npos);
}

TEST(RuntimeDirTest, AFileOrALinkIsRefused) {
  const TemporaryDir dir;
  std::ofstream(dir.path() + "/file") << "x";
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckRuntimeDir(dir.path() + "/file")));
  ASSERT_EQ(symlink(dir.path().c_str(), (dir.path() + "/link").c_str()), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckRuntimeDir(dir.path() + "/link")));
}

TEST(RuntimeDirTest, ALongOrRelativePathIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(CheckRuntimeDir("/tmp/" + std::string(100, 'x'))));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckRuntimeDir("relative")));
}

TEST(RuntimeDirTest, FindsWorkersSockets) {
  const TemporaryDir dir;
  for (const char* const name :
       {"worker-12.sock", "worker-3.sock", "worker-x.sock", "keeper.sock"}) {
    std::ofstream(dir.path() + "/" + name) << "x";
  }
  EXPECT_EQ(WorkerSocketsIn(dir.path()), (std::vector<uint32_t>{3, 12}));
}

}  // namespace
}  // namespace ipc
