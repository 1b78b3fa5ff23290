#include "shim/liveness.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

TEST(Liveness, ALivingProcessMayGrow) {
  const shim::Liveness self(getpid());
  EXPECT_TRUE(self.Alive());
  void* const more =
      mmap(nullptr, size_t{1} << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  EXPECT_TRUE(self.Alive());
  munmap(more, size_t{1} << 30);
}

TEST(Liveness, AZombieIsDead) {
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  const shim::Liveness living(child);
  EXPECT_TRUE(living.Alive());
  kill(child, SIGKILL);
  siginfo_t info;
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  EXPECT_FALSE(living.Alive());
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(living.Alive());
}

TEST(Liveness, AnInvisibleProcessCountsAsAlive) { EXPECT_TRUE(shim::Liveness(0).Alive()); }

}  // namespace
