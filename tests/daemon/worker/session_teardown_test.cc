// In which order a session's resources go, and which of them stay for a successor or for the
// program, over the recording driver.
#include "daemon/worker/session_teardown.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "daemon/worker/lanes.h"
#include "daemon/worker/residency.h"
#include "tests/daemon/worker/recording_driver.h"

namespace worker {
namespace {

namespace limits = ipc::limits;

constexpr CUdeviceptr kRange = limits::kSlotBase;
constexpr uint64_t kRangeBytes = 2 * limits::MiB;

// The parts that go. There is no lanewayd, so the keeper alone decides about memory.
struct Parts {
  Parts(const Environment& environment, SessionSetup setup)
      : file(environment, std::move(setup.file)),
        notices(environment, file.get()),
        held(environment, setup, nullptr),
        iterations(environment, file.page(), &progress) {}

  RegisteredFile file;
  ipc::Progress progress{};
  SessionLife life{file.page(), 0};
  Parking parking{file.page(), &progress, [] { return true; }};
  StreamNotices notices;
  Holdings held;
  CallContext call;
  Iterations iterations;
  Residency memory{
      {1, &held, &life, &parking, &call, &notices, &iterations, file.page(), [] { return false; }}};
  CallHandlers handlers{{&held, &call, &life, &memory.requests, &memory.lane, &memory.turn,
                         &iterations, [] {}, file.get(), &notices.bell, -1}};
  SessionTeardown teardown{
      {&held, &handlers, &iterations, &memory.lane, &memory.turn, &notices, &file}};
};

class SessionTeardownTest : public ::testing::Test {
 protected:
  void SetUp() override {
    FreshRecording().capacity_bytes = 64 * limits::MiB;
    environment_ = RecordingEnvironment();
    environment_.cublas = &ipc::NullCublas();
    environment_.cublaslt = &ipc::NullCublasLt();
    environment_.contexts = {reinterpret_cast<CUcontext>(1)};
    environment_.lanes = &lanes_;
    const absl::StatusOr<int> fd = ipc::SessionFile::Create(1, 0);
    ASSERT_TRUE(fd.ok()) << fd.status();
    absl::StatusOr<ipc::SessionFile> mapped = ipc::SessionFile::Map(*fd);
    close(*fd);
    ASSERT_TRUE(mapped.ok()) << mapped.status();
    pinned_fd_ = memfd_create("pinned", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(pinned_fd_, static_cast<off_t>(limits::kPinnedWindowBytes)), 0);
    parts_ = std::make_unique<Parts>(environment_, SessionSetup{.session_id = 1,
                                                                .file = std::move(*mapped),
                                                                .channel = {},
                                                                .pinned_fd = dup(pinned_fd_)});
    std::string error;
    ASSERT_TRUE(parts_->held.arena.Reserve(&error)) << error;
    parts_->handlers.UseDevice(1);
    ASSERT_EQ(parts_->handlers.memory().ArenaMap(kRange, kRangeBytes), CUDA_SUCCESS);
    ASSERT_EQ(parts_->handlers.memory().LaneReserve(kRangeBytes), CUDA_SUCCESS);
    ASSERT_TRUE(parts_->memory.lane.is_inside());
  }
  void TearDown() override {
    parts_.reset();
    close(pinned_fd_);
  }
  bool HasStreams() { return !parts_->held.streams.All().empty(); }
  uint64_t Acknowledged() {
    return parts_->file.get()->completions()->acknowledged[limits::kLegacySlots].load();
  }
  void CreateStream() {
    CUstream stream = nullptr;
    ASSERT_EQ(parts_->handlers.streams().StreamCreate(&stream, 0, 0, limits::kLegacySlots),
              CUDA_SUCCESS);
  }

  Recording& recording_ = FreshRecording();
  Environment environment_;
  LaneTable lanes_{&environment_};
  int pinned_fd_ = -1;
  std::unique_ptr<Parts> parts_;
};

TEST_F(SessionTeardownTest, AnEndGivesTheMemoryBack) {
  CreateStream();
  parts_->teardown.End();
  EXPECT_FALSE(HasStreams());
  EXPECT_TRUE(recording_.mapped.empty());
  EXPECT_EQ(recording_.used_bytes, 0u);
  EXPECT_EQ(Acknowledged(), ipc::kEveryTicket) << "no stream waits for a program that is gone";
}

// The program may live on, and have memory of its own there.
TEST_F(SessionTeardownTest, AnEndLeavesWhatIsInPinnedMemory) {
  constexpr uint64_t kPinned = limits::kSlotBase + limits::kDeviceArenaBytes;
  ASSERT_EQ(parts_->handlers.memory().PinnedAlloc(kPinned, 4096, 0), CUDA_SUCCESS);
  *reinterpret_cast<char*>(kPinned) = 7;
  parts_->teardown.End();
  char byte = 0;
  EXPECT_EQ(pread(pinned_fd_, &byte, 1, 0), 1);
  EXPECT_EQ(byte, 7);
}

TEST_F(SessionTeardownTest, ASuccessorFindsTheMemory) {
  CreateStream();
  parts_->teardown.LeaveToSuccessor();
  EXPECT_FALSE(HasStreams());
  EXPECT_TRUE(recording_.mapped.empty()) << "this worker has it no more";
  EXPECT_GE(recording_.used_bytes, kRangeBytes);
  EXPECT_EQ(Acknowledged(), 0u) << "the program lives, and the successor's streams wait for it";
}

TEST_F(SessionTeardownTest, AfterAResetTheSessionGoesOn) {
  CreateStream();
  parts_->teardown.Reset();
  EXPECT_FALSE(HasStreams());
  EXPECT_TRUE(recording_.mapped.empty());
  EXPECT_FALSE(parts_->memory.lane.is_inside());
  EXPECT_EQ(Acknowledged(), 0u) << "its next streams wait for the program again";
  CreateStream();
  EXPECT_EQ(parts_->handlers.memory().ArenaMap(kRange, kRangeBytes), CUDA_SUCCESS);
  EXPECT_EQ(parts_->handlers.memory().LaneReserve(kRangeBytes), CUDA_SUCCESS);
  EXPECT_TRUE(parts_->memory.lane.is_inside());
}

}  // namespace
}  // namespace worker
