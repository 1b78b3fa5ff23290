// How far a session is, where its worker and lanewayd see it and its client does not.
#include "daemon/common/progress_map.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/common/swap_file.h"
#include "ipc/unique_fd.h"

namespace common {
namespace {

TEST(ProgressMapTest, WorkersAndDaemonsOfOneFileSeeTheSame) {
  const ipc::UniqueFd file(memfd_create("swap", MFD_CLOEXEC));
  const ProgressMap worker(file.get());
  const ProgressMap daemon(file.get());
  ASSERT_TRUE(worker.shared() && daemon.shared());
  worker.get()->held_us.fetch_add(4711);
  EXPECT_EQ(daemon.get()->held_us.load(), 4711u);
  EXPECT_FALSE(HoldsMemory(file.get())) << "no memory of the session lies in the file yet";
  EXPECT_EQ(ProgressMap(file.get()).get()->held_us.load(), 4711u) << "the next worker goes on";
}

TEST(ProgressMapTest, AFileThatHoldsMoreKeepsIt) {
  const ipc::UniqueFd file(memfd_create("swap", MFD_CLOEXEC));
  const uint64_t count = 3;
  ASSERT_EQ(pwrite(file.get(), &count, sizeof count, 0), ssize_t{sizeof count});
  ASSERT_EQ(ftruncate(file.get(), kSwapOffset), 0);
  const ProgressMap worker(file.get());
  worker.get()->iterations.store(UINT64_MAX);
  EXPECT_TRUE(HoldsMemory(file.get()));
  EXPECT_EQ(lseek(file.get(), 0, SEEK_END), static_cast<off_t>(kSwapOffset));
}

TEST(ProgressMapTest, WithoutAFileItCountsForItself) {
  const ProgressMap none;
  const ProgressMap bad(-1);
  EXPECT_FALSE(none.shared() || bad.shared());
  bad.get()->iterations.store(1);
  EXPECT_EQ(none.get()->iterations.load(), 0u);
}

}  // namespace
}  // namespace common
