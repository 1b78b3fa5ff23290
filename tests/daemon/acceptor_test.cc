// Listening when there is no descriptor left.
#include "daemon/common/acceptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

#include "ipc/futex.h"
#include "ipc/socket.h"
#include "tests/ipc/testing.h"

namespace common {
namespace {

// No descriptor can be made while it lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = fcntl(0, F_DUPFD, 0);
    close(next);
    const rlimit none{static_cast<rlim_t>(next), before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST(AcceptorTest, WithoutDescriptorsItPausesAndGoesOnLater) {
#ifdef __SANITIZE_ADDRESS__
  // tidy: allow word, because one test of one build is left out, and ctest shows it as skipped.
  GTEST_SKIP() << "the sanitizer of undefined behaviour opens a pipe to look at an object, and "
                  "takes the object for a broken one when there is no descriptor for it";
#endif
  const ipc::TemporaryDir dir;
  const std::string path = dir.path() + "/listen.sock";
  EventLoop loop;
  Acceptor acceptor(&loop);
  std::vector<ipc::UniqueFd> accepted;
  int failures = 0;
  acceptor.Listen(
      *ipc::ListenAt(path), [&](ipc::UniqueFd socket) { accepted.push_back(std::move(socket)); },
      [&](const std::string&) { ++failures; });
  const ipc::UniqueFd client = *ipc::ConnectTo(path);
  {
    const NoDescriptors none;
    loop.RunOnce();
    EXPECT_EQ(failures, 1);
    const int64_t begin = ipc::MonotonicNs();
    loop.RunOnce();  // until its pause is over: who waits in the queue does not wake it
    EXPECT_GE(ipc::MonotonicNs() - begin, Acceptor::kPauseUs * 1000 / 2);
    loop.RunOnce();
    EXPECT_EQ(failures, 1) << "it is told once";
    EXPECT_TRUE(accepted.empty());
  }
  while (accepted.empty()) loop.RunOnce();
  EXPECT_EQ(accepted.size(), 1u);
}

}  // namespace
}  // namespace common
