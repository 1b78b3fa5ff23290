// Driver calls that may wait for other sessions keep no session waiting.
#include "daemon/worker/reaper.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <future>

#include "daemon/worker/pinned.h"
#include "ipc/calls/limits.h"
#include "tests/daemon/worker/recording_driver.h"

namespace worker {
namespace {

constexpr uint64_t kReapedBytes = 1 << 20;
constexpr uint32_t kSlot = 3;
constexpr uint64_t kWindow =
    ipc::limits::kSlotBase + kSlot * ipc::limits::kSlotBytes + ipc::limits::kDeviceArenaBytes;

class ReaperTest : public testing::Test {
 protected:
  ReaperTest() : environment_(RecordingEnvironment()) { environment_.reaper = &reaper_; }
  // From here on the driver waits for another session's work.
  void Hold() {
    reaper_.Later([done = others_done_.get_future().share()] { done.wait(); });
  }
  void LetGo() {
    others_done_.set_value();
    std::promise<void> done;
    reaper_.Later([&done] { done.set_value(); });
    done.get_future().wait();
  }
  static int File() {
    const int fd = memfd_create("pinned", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(fd, static_cast<off_t>(ipc::limits::kPinnedWindowBytes)), 0);
    return fd;
  }

  std::promise<void> others_done_;
  PinnedBudget two_{2};
  Reaper reaper_;
  Environment environment_;
};

TEST_F(ReaperTest, DoesAllInOrderBeforeItEnds) {
  std::string done;
  {
    Reaper reaper;
    for (const char* const job : {"a", "b", "c"}) reaper.Later([&done, job] { done += job; });
  }
  EXPECT_EQ(done, "abc");
}

TEST_F(ReaperTest, WithoutOneAJobIsDoneAtOnce) {
  bool done = false;
  Later(Environment(), [&done] { done = true; });
  EXPECT_TRUE(done);
}

TEST_F(ReaperTest, PinnedMemoryIsFreedWhileTheDriverWaitsForOthers) {
  PinnedMemory pinned(environment_, kSlot, File());
  ASSERT_EQ(pinned.Map(kWindow, kReapedBytes, 0), CUDA_SUCCESS);
  Hold();
  EXPECT_EQ(pinned.Unmap(kWindow), CUDA_SUCCESS) << "it does not wait";
  EXPECT_EQ(pinned.bytes(), 0u);
  EXPECT_FALSE(pinned.Contains(kWindow, kReapedBytes));
  EXPECT_EQ(pinned.Map(kWindow, kReapedBytes, 0), CUDA_ERROR_NOT_READY)
      << "the driver has it still";
  EXPECT_EQ(pinned.Map(kWindow + kReapedBytes, kReapedBytes, 0), CUDA_SUCCESS) << "another place";
  EXPECT_EQ(pinned.Map(kWindow + kReapedBytes, kReapedBytes, 0), CUDA_ERROR_INVALID_VALUE)
      << "its own";
  LetGo();
  EXPECT_EQ(pinned.Map(kWindow, kReapedBytes, 0), CUDA_SUCCESS);
}

TEST_F(ReaperTest, TheSlotsNextSessionIsToldOfWhatTheLastOneLeft) {
  {
    PinnedMemory pinned(environment_, kSlot, File());
    ASSERT_EQ(pinned.Map(kWindow, kReapedBytes, 0), CUDA_SUCCESS);
    Hold();
  }
  PinnedMemory next(environment_, kSlot, File());
  EXPECT_EQ(next.Map(kWindow, kReapedBytes, 0), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(next.Map(kWindow + kReapedBytes, kReapedBytes, 0), CUDA_SUCCESS);
  LetGo();
  EXPECT_EQ(next.Map(kWindow, kReapedBytes, 0), CUDA_SUCCESS);
}

// A range takes one of the process's mappings until the reaper has unmapped it.
TEST_F(ReaperTest, PinnedRangesOfAllSessionsCountUntilTheyAreUnmapped) {
  PinnedMemory one(environment_, kSlot, File(), &two_);
  PinnedMemory other(environment_, kSlot + 1, File(), &two_);
  constexpr uint64_t kOther = kWindow + ipc::limits::kSlotBytes;
  EXPECT_EQ(one.Map(kWindow, kReapedBytes, 0), CUDA_SUCCESS);
  EXPECT_EQ(one.Map(kWindow, kReapedBytes, 0), CUDA_ERROR_INVALID_VALUE) << "counts as none";
  EXPECT_EQ(other.Map(kOther, kReapedBytes, 0), CUDA_SUCCESS);
  EXPECT_EQ(other.Map(kOther + kReapedBytes, kReapedBytes, 0), CUDA_ERROR_OUT_OF_MEMORY);
  Hold();
  EXPECT_EQ(one.Unmap(kWindow), CUDA_SUCCESS);
  EXPECT_EQ(other.Map(kOther + kReapedBytes, kReapedBytes, 0), CUDA_ERROR_OUT_OF_MEMORY);
  LetGo();
  EXPECT_EQ(other.Map(kOther + kReapedBytes, kReapedBytes, 0), CUDA_SUCCESS);
}

}  // namespace
}  // namespace worker
