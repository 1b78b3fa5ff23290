#include "ipc/session_file.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "ipc/futex.h"
#include "tests/ipc/testing.h"

namespace ipc {
namespace {

TEST(SessionFileTest, BothSidesSeeOnePage) {
  const int fd = *SessionFile::Create(77, 5);
  SessionFile one = *SessionFile::Map(fd), two = *SessionFile::Map(fd);
  close(fd);
  EXPECT_EQ(one.page()->session_id, 77u);
  EXPECT_EQ(two.page()->slot, 5u);
  one.completions()->completed[3].store(9);
  EXPECT_EQ(two.completions()->completed[3].load(), 9u);
  one.staging()[limits::kStagingBytes - 1] = std::byte{1};
  EXPECT_EQ(two.staging()[limits::kStagingBytes - 1], std::byte{1});
}

TEST(SessionFileTest, ItsSizeIsSealed) {
  const int fd = *SessionFile::Create(1, 0);
  EXPECT_NE(ftruncate(fd, 0), 0);
  EXPECT_NE(ftruncate(fd, kSessionFileBytes * 2), 0);
  close(fd);
}

TEST(SessionFileTest, AnotherFileIsRefused) {
  const int fd = memfd_create("other", MFD_CLOEXEC);
  EXPECT_FALSE(SessionFile::Map(fd).ok());
  ASSERT_EQ(ftruncate(fd, kSessionFileBytes), 0);
  EXPECT_FALSE(SessionFile::Map(fd).ok());  // the right size, but no magic
  close(fd);
}

TEST(SessionFileTest, NoRoomIsAnErrorWithARemedy) {
  const pid_t child = fork();
  if (child == 0) {  // the limit would stay with this process
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    const absl::StatusOr<int> file = SessionFile::Create(1, 0);
    _exit(absl::IsResourceExhausted(file.status()) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(SessionFileTest, TheFirstLossWins) {
  const int fd = *SessionFile::Create(1, 0);
  SessionFile file = *SessionFile::Map(fd);
  close(fd);
  MarkLost(file.page(), 700, "a kernel strayed");
  MarkLost(file.page(), 806, "the worker is gone");
  EXPECT_EQ(file.page()->loss.load(), 700u);
  EXPECT_STREQ(file.page()->loss_text, "a kernel strayed");
}

TEST(SessionFileTest, ALongLossTextIsCut) {
  const int fd = *SessionFile::Create(1, 0);
  SessionFile file = *SessionFile::Map(fd);
  close(fd);
  MarkLost(file.page(), 700, std::string(5000, 'x').c_str());
  EXPECT_EQ(std::strlen(file.page()->loss_text), kLossTextBytes - 1);
}

TEST(SessionFileTest, ALossWakesWhoSleeps) {
  const int fd = *SessionFile::Create(1, 0);
  SessionFile file = *SessionFile::Map(fd);
  close(fd);
  SessionPage* const page = file.page();
  constexpr int64_t kSleepUs = 60 * kSecondUs;
  std::thread sleeper([page] {
    const int64_t deadline = MonotonicNs() + kSleepUs * 1000;
    while (page->loss.load() == 0 && MonotonicNs() < deadline) {
      const uint32_t ticket = page->client_doorbell.load();
      if (page->loss.load() == 0) FutexWait(&page->client_doorbell, ticket, kSleepUs);
    }
  });
  const int64_t begin = MonotonicNs();
  MarkLost(page, 806, "gone");
  sleeper.join();
  EXPECT_LT(MonotonicNs() - begin, kSleepUs * 1000 / 2) << "its sleep came to its end";
}

}  // namespace
}  // namespace ipc
