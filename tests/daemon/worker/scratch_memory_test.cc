// The scratch memory of a session: made once, of free room, given back behind the work that uses
// it, and at the same address when the session's memory was away.
#include "daemon/worker/scratch_memory.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "daemon/worker/backed_addresses.h"
#include "daemon/worker/lanes.h"
#include "daemon/worker/swap.h"
#include "ipc/calls/limits.h"
#include "tests/daemon/worker/bare_holdings.h"
#include "tests/daemon/worker/recording_driver.h"

namespace worker {
namespace {

constexpr uint64_t kScratchBytes = ipc::limits::kRenameBytesMax;

class ScratchMemoryTest : public testing::Test, public PersistentMemory {
 protected:
  ScratchMemoryTest() {
    recording_.capacity_bytes = 64 * ipc::limits::MiB;
    environment_.lanes = &lanes_;
    environment_.backed = &backed_;
    environment_.swap = &swap_;
    Open(1);
  }
  void Open(size_t devices) {
    scratch_.reset();
    held_.reset();
    held_ = MakeHoldings(&environment_, devices);
    ASSERT_NE(held_, nullptr);
    EXPECT_EQ(held_->streams.Create(ipc::limits::kLegacySlots, 0, 0, 0, &stream_), CUDA_SUCCESS);
    scratch_ = std::make_unique<SessionScratch>(held_.get(), &call_, this);
  }

  CUresult AskForMemory(uint64_t) override { return CUDA_ERROR_NOT_SUPPORTED; }
  CUresult MapWithRoom(uint64_t, const std::function<CUresult()>&) override {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  CUresult MapIfFree(uint64_t bytes, const std::function<CUresult()>& map) override {
    ++asked_;
    EXPECT_EQ(bytes, kScratchBytes);
    return has_room_ ? map() : CUDA_ERROR_OUT_OF_MEMORY;
  }
  void GiveMemoryBack(uint64_t) override {}
  void FreeRange(CUdeviceptr address) override {
    EXPECT_EQ(held_->arena.Free(address), CUDA_SUCCESS);
    held_->addresses.Gone(address);
  }

  Recording& recording_ = FreshRecording();
  Environment environment_ = RecordingEnvironment();
  LaneTable lanes_{&environment_};
  BackedAddresses backed_;
  SwapSpace swap_{64 * ipc::limits::MiB};
  CallContext call_{.device = 0};
  StreamTable::Stream* stream_ = nullptr;
  std::unique_ptr<Holdings> held_;
  std::unique_ptr<SessionScratch> scratch_;
  int asked_ = 0;
  bool has_room_ = true;
};

TEST_F(ScratchMemoryTest, IsMadeOnceAndCounts) {
  EXPECT_EQ(scratch_->span().bytes, 0u);
  const CUdeviceptr address = scratch_->Take();
  ASSERT_NE(address, 0u);
  EXPECT_EQ(scratch_->Take(), address);
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(held_->arena.bytes(), kScratchBytes);
  EXPECT_TRUE(held_->addresses.Backs(address, kScratchBytes));
  EXPECT_EQ(scratch_->span().address, address);
  EXPECT_EQ(scratch_->span().bytes, kScratchBytes);
}

TEST_F(ScratchMemoryTest, IsNotAskedForAgainBeforeOrdersAreForgotten) {
  has_room_ = false;
  EXPECT_EQ(scratch_->Take(), 0u);
  has_room_ = true;
  EXPECT_EQ(scratch_->Take(), 0u);
  EXPECT_EQ(asked_, 1);
  scratch_->GiveBack();
  EXPECT_NE(scratch_->Take(), 0u);
}

TEST_F(ScratchMemoryTest, GoesBehindTheWorkBefore) {
  const CUdeviceptr address = scratch_->Take();
  held_->streams.Use(stream_);
  recording_.busy_streams.insert(stream_->driver);
  scratch_->GiveBack();
  EXPECT_EQ(held_->arena.bytes(), kScratchBytes) << "the device may use it";
  EXPECT_FALSE(held_->addresses.Backs(address, 1)) << "no later call may";
  EXPECT_NE(scratch_->Take(), address);
  scratch_->GiveBack();
  recording_.busy_streams.clear();
  recording_.unfinished_events.clear();
  EXPECT_TRUE(held_->frees.Poll());
  EXPECT_EQ(held_->arena.bytes(), 0u);
  EXPECT_EQ(scratch_->Take(), address);
  EXPECT_TRUE(held_->addresses.Backs(address, kScratchBytes));
}

// Graphs have the address in their nodes.
TEST_F(ScratchMemoryTest, ComesBackFromTheHostAtItsAddressWithoutBytes) {
  const CUdeviceptr address = scratch_->Take();
  ASSERT_TRUE(held_->arena.SwapOut().ok());
  EXPECT_EQ(held_->arena.bytes(), 0u);
  EXPECT_EQ(held_->arena.swapped_bytes(), 0u);
  ASSERT_EQ(held_->arena.SwapIn(), CUDA_SUCCESS);
  EXPECT_EQ(scratch_->Take(), address);
  EXPECT_EQ(asked_, 1);
  EXPECT_TRUE(held_->addresses.Backs(address, kScratchBytes));
}

TEST_F(ScratchMemoryTest, GoesWhileItIsOnTheHost) {
  (void)scratch_->Take();
  ASSERT_TRUE(held_->arena.SwapOut().ok());
  scratch_->GiveBack();
  ASSERT_EQ(held_->arena.SwapIn(), CUDA_SUCCESS);
  EXPECT_EQ(held_->arena.bytes(), 0u);
}

TEST_F(ScratchMemoryTest, IsForgottenWithAllMemoryOfTheSession) {
  (void)scratch_->Take();
  scratch_->Forget();
  held_->arena.Clear();
  EXPECT_EQ(scratch_->span().bytes, 0u);
  EXPECT_NE(scratch_->Take(), 0u);
  EXPECT_EQ(held_->arena.bytes(), kScratchBytes);
}

// Launches on the other device might not reach it.
TEST_F(ScratchMemoryTest, ASessionOnTwoDevicesHasNone) {
  Open(2);
  EXPECT_EQ(scratch_->Take(), 0u);
  EXPECT_EQ(asked_, 0);
}

}  // namespace
}  // namespace worker
