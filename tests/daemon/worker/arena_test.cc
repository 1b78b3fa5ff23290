// The arena over a recorded driver: ranges, limits, frees that wait, swapping, moving.
#include "daemon/worker/arena.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <memory>
#include <random>

#include "daemon/worker/deferred_frees.h"
#include "ipc/calls/limits.h"
#include "tests/daemon/worker/recording_driver.h"
#include "tests/harness/seed.h"

namespace worker {
namespace {

using ipc::limits::MiB;

class ArenaTest : public testing::Test {
 protected:
  ArenaTest() : recording_(FreshRecording()), environment_(RecordingEnvironment()) {
    recording_.capacity_bytes = 64 * MiB;
    environment_.lanes = &lanes_;
    environment_.swap = &swap_;
    std::string error;
    EXPECT_TRUE(arena_.Reserve(&error)) << error;
  }
  Tenant MakeTenant() { return {7, 1000, job_}; }
  // In another worker, with the file that lanewayd keeps.
  std::unique_ptr<Arena> Successor() {
    ipc::UniqueFd swap_file(fcntl(swap_file_.get(), F_DUPFD_CLOEXEC, 0));
    std::unique_ptr<Arena> arena =
        std::make_unique<Arena>(environment_, MakeTenant(), 0, std::move(swap_file));
    std::string error;
    EXPECT_TRUE(arena->Reserve(&error)) << error;
    EXPECT_EQ(arena->Restore(), CUDA_SUCCESS);
    return arena;
  }
  // Gives every 64th KiB a byte of its own.
  void Fill(CUdeviceptr address, uint64_t bytes, unsigned seed) {
    for (uint64_t at = 0; at < bytes; at += 64 << 10) {
      recording_.At(address + at) = static_cast<uint8_t>(seed + at / (64 << 10) * 7);
    }
  }
  void ExpectFilled(CUdeviceptr address, uint64_t bytes, unsigned seed) {
    for (uint64_t at = 0; at < bytes; at += 64 << 10) {
      ASSERT_EQ(recording_.At(address + at), static_cast<uint8_t>(seed + at / (64 << 10) * 7));
    }
  }

  Recording& recording_;
  Environment environment_;
  LaneTable lanes_{&environment_};
  SwapSpace swap_{64 * MiB};
  ipc::UniqueFd swap_file_{memfd_create("swap", MFD_CLOEXEC)};
  std::shared_ptr<JobMemory> job_ = std::make_shared<JobMemory>();
  Arena arena_{environment_, MakeTenant(), 0};
  const CUdeviceptr base_ = ipc::limits::kSlotBase;
};

TEST_F(ArenaTest, RangesAreBackedByFewExtentsAndNeverTwice) {
  EXPECT_EQ(arena_.Map(0, base_ + 2 * MiB, 14 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(recording_.mapped,
            (std::set<CUdeviceptr>{base_ + 2 * MiB, base_ + 10 * MiB, base_ + 14 * MiB}));
  EXPECT_EQ(arena_.Map(0, base_, 4 * MiB), CUDA_ERROR_INVALID_VALUE) << "its second half is backed";
  EXPECT_EQ(arena_.Map(0, base_ + 14 * MiB, 2 * MiB), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(arena_.Map(0, base_, 2 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(arena_.Map(0, base_ + 16 * MiB, 64 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(arena_.bytes(), 16 * MiB) << "all or nothing";
  EXPECT_EQ(recording_.used_bytes, 16 * MiB);
  EXPECT_EQ(job_->used(0), 16 * MiB);
  EXPECT_EQ(arena_.Free(base_ + 2 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(arena_.Free(base_ + 2 * MiB), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(recording_.used_bytes, 2 * MiB);
}

TEST_F(ArenaTest, RangesLieInTheirPart) {
  EXPECT_EQ(arena_.Map(0, base_ - 2 * MiB, 2 * MiB), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(arena_.Map(0, base_ + MiB, 2 * MiB), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(arena_.Map(0, base_, MiB), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(arena_.Map(0, base_, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(arena_.Map(0, arena_.ephemeral_base(), 2 * MiB), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(arena_.Map(0, arena_.ephemeral_base() - 2 * MiB, 4 * MiB), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(arena_.Map(0, base_, ~uint64_t{0} - 2 * MiB + 1), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr own = 0;
  EXPECT_EQ(arena_.Place(0, 3 * MiB, &own), CUDA_SUCCESS);
  EXPECT_EQ(own, base_ + ipc::limits::kWorkerOffset);
}

TEST_F(ArenaTest, AJobsLimitHoldsForRangesAndLane) {
  job_->SetLimit(8 * MiB);
  EXPECT_EQ(arena_.Map(0, base_, 10 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(arena_.OthersHold(0, 10 * MiB)) << "nobody else is to blame";
  EXPECT_EQ(arena_.Map(0, base_, 4 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(arena_.ReserveLane(0, 6 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(arena_.ReserveLane(0, 4 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(recording_.used_bytes, 8 * MiB);
  uint64_t free_bytes = 0, total_bytes = 0;
  EXPECT_EQ(arena_.MemoryInfo(0, &free_bytes, &total_bytes), CUDA_SUCCESS);
  EXPECT_EQ(total_bytes, 8 * MiB);
  EXPECT_EQ(free_bytes, 0u);
  arena_.Clear();
  EXPECT_EQ(job_->used(0), 0u);
  EXPECT_EQ(recording_.used_bytes, 0u);
}

TEST_F(ArenaTest, WaitingHelpsWhenOthersHoldWhatTheJobMayHave) {
  recording_.AddExtent({1000, {OwnerKind::kSession, 8}, 60 * MiB});
  EXPECT_EQ(arena_.Map(0, base_, 8 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(arena_.OthersHold(0, 8 * MiB));
  EXPECT_FALSE(arena_.OthersHold(0, 66 * MiB)) << "the device is smaller";
}

TEST_F(ArenaTest, MemoryOfOthersIsZeroedFirst) {
  recording_.clear = true;
  EXPECT_EQ(arena_.Map(0, base_, 6 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(recording_.cleared_bytes, 6 * MiB);
  EXPECT_EQ(arena_.ReserveLane(0, 4 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(recording_.cleared_bytes, 10 * MiB);
}

TEST_F(ArenaTest, FreedRangesWaitForTheirWork) {
  DeferredFrees frees(environment_);
  StreamTable streams(environment_, nullptr, SeenDevices({}, 1));
  StreamTable::Stream* const legacy = streams.Legacy(0);
  EXPECT_EQ(arena_.Map(0, base_, 4 * MiB), CUDA_SUCCESS);
  recording_.busy_streams.insert(legacy->driver);
  recording_.unfinished_events.insert(reinterpret_cast<CUevent>(
      static_cast<uintptr_t>(recording_.next_handle)));  // the event that the free will create
  EXPECT_EQ(frees.Free(streams.All(), [this] { arena_.Free(base_); }), CUDA_SUCCESS);
  EXPECT_FALSE(frees.Poll());
  EXPECT_EQ(recording_.used_bytes, 4 * MiB);
  recording_.unfinished_events.clear();
  EXPECT_TRUE(frees.Poll());
  EXPECT_EQ(recording_.used_bytes, 0u);
}

TEST_F(ArenaTest, SwappedMemoryComesBackWithItsBytes) {
  EXPECT_EQ(arena_.Map(0, base_, 14 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(arena_.Map(0, base_ + 20 * MiB, 2 * MiB), CUDA_SUCCESS);
  CUdeviceptr own = 0;
  EXPECT_EQ(arena_.Place(0, 4 * MiB, &own), CUDA_SUCCESS);
  Fill(base_, 14 * MiB, 3);
  Fill(base_ + 20 * MiB, 2 * MiB, 5);
  ASSERT_TRUE(arena_.SwapOut().ok());
  EXPECT_TRUE(arena_.swapped());
  EXPECT_EQ(recording_.used_bytes, 0u) << "workspaces go without their bytes";
  EXPECT_EQ(arena_.RangeBytes(own), 4 * MiB);
  EXPECT_EQ(swap_.used_bytes(), 16 * MiB);
  EXPECT_EQ(job_->used(0), 20 * MiB) << "it is the job's still";
  recording_.AddExtent({1000, {OwnerKind::kSession, 8}, 46 * MiB});
  EXPECT_EQ(arena_.SwapIn(), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(arena_.swapped());
  EXPECT_EQ(recording_.used_bytes, 46 * MiB) << "all or nothing";
  recording_.used_bytes -= 46 * MiB;
  ASSERT_EQ(arena_.SwapIn(), CUDA_SUCCESS);
  ExpectFilled(base_, 14 * MiB, 3);
  ExpectFilled(base_ + 20 * MiB, 2 * MiB, 5);
  EXPECT_EQ(swap_.used_bytes(), 0u);
  EXPECT_EQ(recording_.used_bytes, 20 * MiB);
  EXPECT_EQ(arena_.Free(own), CUDA_SUCCESS);
  EXPECT_EQ(arena_.Free(base_), CUDA_SUCCESS);
}

// The device's copies are its own affair until it says that they are complete: a buffer is neither
// read nor filled again before.
TEST_F(ArenaTest, SwappingWaitsForEachCopyOfTheDevice) {
  EXPECT_EQ(arena_.Map(0, base_, 26 * MiB), CUDA_SUCCESS);
  Fill(base_, 26 * MiB, 3);
  recording_.asynchronous = true;
  ASSERT_TRUE(arena_.SwapOut().ok());
  EXPECT_TRUE(recording_.queued.empty());
  ASSERT_EQ(arena_.SwapIn(), CUDA_SUCCESS);
  EXPECT_TRUE(recording_.queued.empty());
  ExpectFilled(base_, 26 * MiB, 3);
}

TEST_F(ArenaTest, ACopyIsCompleteWhenItReturns) {
  EXPECT_EQ(arena_.Map(0, base_, 2 * MiB), CUDA_SUCCESS);
  recording_.asynchronous = true;
  ChunkedCopy copy(environment_, 0);
  const std::vector<std::byte> bytes(64 << 10, std::byte{7});
  ASSERT_EQ(copy.In(bytes.data(), bytes.size(), base_), CUDA_SUCCESS);
  EXPECT_EQ(recording_.At(base_), 7);
}

TEST_F(ArenaTest, WhatFitsExactlyIsSwapped) {
  SwapSpace space(4 * MiB);
  EXPECT_TRUE(space.Take(4 * MiB).ok());
  EXPECT_FALSE(space.Take(1).ok());
  space.Give(4 * MiB);
  EXPECT_FALSE(space.Take(4 * MiB + 1).ok());
}

// Without a page for the count, a swap could neither be completed nor undone.
TEST_F(ArenaTest, WhatASwapWritesIsTakenBeforeItBegins) {
  SwapFile file(ipc::UniqueFd(fcntl(swap_file_.get(), F_DUPFD_CLOEXEC, 0)));
  ASSERT_TRUE(file.Begin(&swap_, {{base_, 2 * MiB, 0, 0}}).ok());
  struct stat before = {}, after = {};
  ASSERT_EQ(fstat(swap_file_.get(), &before), 0);
  file.Commit();
  ASSERT_EQ(fstat(swap_file_.get(), &after), 0);
  EXPECT_EQ(after.st_blocks, before.st_blocks);
}

// Before anything is asked of the keeper, which may have none left.
TEST_F(ArenaTest, ARangeOverAnotherIsAMistakeAndNoWantOfMemory) {
  EXPECT_EQ(arena_.Map(0, base_, 4 * MiB), CUDA_SUCCESS);
  recording_.capacity_bytes = recording_.used_bytes;
  EXPECT_EQ(arena_.Map(0, base_ + 2 * MiB, 2 * MiB), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(arena_.Map(0, base_ + 4 * MiB, 2 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
}

// A library handle may be destroyed while its session is away, or be all that there is.
TEST_F(ArenaTest, AWorkspaceIsFreedWhereverItIs) {
  CUdeviceptr one = 0, two = 0, three = 0;
  EXPECT_EQ(arena_.Place(0, 4 * MiB, &one), CUDA_SUCCESS);
  EXPECT_EQ(arena_.Place(0, 4 * MiB, &two), CUDA_SUCCESS);
  ASSERT_TRUE(arena_.SwapOut().ok());
  EXPECT_EQ(recording_.used_bytes, 0u);
  EXPECT_EQ(arena_.Free(one), CUDA_SUCCESS);
  EXPECT_EQ(arena_.Free(one), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(job_->used(0), 4 * MiB);
  ASSERT_EQ(arena_.SwapIn(), CUDA_SUCCESS);
  EXPECT_EQ(recording_.used_bytes, 4 * MiB);
  EXPECT_EQ(arena_.bytes(), 4 * MiB);
  EXPECT_EQ(arena_.Place(0, 4 * MiB, &three), CUDA_SUCCESS);
  EXPECT_EQ(three, one) << "its addresses are free";
  ASSERT_TRUE(arena_.SwapOut().ok());
  arena_.Clear();
  EXPECT_EQ(job_->used(0), 0u);
  EXPECT_EQ(recording_.used_bytes, 0u);
}

TEST_F(ArenaTest, ALaneInUseIsSwappedAlong) {
  EXPECT_EQ(arena_.ReserveLane(0, 6 * MiB), CUDA_SUCCESS);
  Fill(arena_.ephemeral_base(), 6 * MiB, 9);
  ASSERT_TRUE(arena_.SwapOut(true).ok());
  Fill(arena_.ephemeral_base(), 6 * MiB, 1);  // another session's iteration
  ASSERT_EQ(arena_.SwapIn(), CUDA_SUCCESS);
  ExpectFilled(arena_.ephemeral_base(), 6 * MiB, 9);
}

TEST_F(ArenaTest, NoRoomToSwapLeavesAllInPlace) {
  SwapSpace small(4 * MiB);
  environment_.swap = &small;
  EXPECT_EQ(arena_.Map(0, base_, 4 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(arena_.Map(0, base_ + 8 * MiB, 4 * MiB), CUDA_SUCCESS);
  Fill(base_, 4 * MiB, 3);
  const absl::Status status = arena_.SwapOut();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_NE(std::string(status.message()).find("raise --swap"), std::string::npos);
  EXPECT_FALSE(arena_.swapped());
  EXPECT_EQ(small.used_bytes(), 0u);
  ExpectFilled(base_, 4 * MiB, 3);
}

TEST_F(ArenaTest, ASwappedSessionsEndGivesEverythingBack) {
  EXPECT_EQ(arena_.Map(0, base_, 4 * MiB), CUDA_SUCCESS);
  ASSERT_TRUE(arena_.SwapOut().ok());
  arena_.Clear();
  EXPECT_EQ(swap_.used_bytes(), 0u);
  EXPECT_EQ(job_->used(0), 0u);
}

TEST_F(ArenaTest, AnotherWorkerMapsTheSameBytesAgain) {
  EXPECT_EQ(arena_.Map(0, base_, 14 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(arena_.Map(0, base_ + 14 * MiB, 2 * MiB), CUDA_SUCCESS);
  CUdeviceptr own = 0;
  EXPECT_EQ(arena_.Place(0, 4 * MiB, &own), CUDA_SUCCESS);
  EXPECT_EQ(arena_.ReserveLane(0, 6 * MiB), CUDA_SUCCESS);
  Fill(base_, 14 * MiB, 3);
  arena_.Detach();
  EXPECT_TRUE(recording_.mapped.empty());
  EXPECT_EQ(job_->used(0), 0u);
  EXPECT_EQ(recording_.used_bytes, 26 * MiB) << "nothing is freed";

  Arena successor(environment_, MakeTenant(), 0);
  std::string error;
  ASSERT_TRUE(successor.Reserve(&error));
  ASSERT_EQ(successor.Restore(), CUDA_SUCCESS);
  ExpectFilled(base_, 14 * MiB, 3);
  EXPECT_EQ(recording_.used_bytes, 22 * MiB) << "library handles get new workspaces";
  EXPECT_EQ(successor.ReserveLane(0, 6 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(recording_.used_bytes, 22 * MiB) << "the lane was there still";
  EXPECT_EQ(job_->used(0), 22 * MiB);
  EXPECT_EQ(successor.Map(0, base_, 2 * MiB), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(successor.Free(base_), CUDA_SUCCESS);
  EXPECT_EQ(recording_.used_bytes, 8 * MiB) << "each range ends by itself";
  successor.Clear();
  EXPECT_EQ(recording_.used_bytes, 0u);
}

TEST_F(ArenaTest, SwappedMemoryOutlivesItsWorker) {
  std::unique_ptr<Arena> arena = Successor();
  EXPECT_EQ(arena->Map(0, base_, 14 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(arena->Map(0, base_ + 20 * MiB, 2 * MiB), CUDA_SUCCESS);
  Fill(base_, 14 * MiB, 3);
  Fill(base_ + 20 * MiB, 2 * MiB, 5);
  EXPECT_FALSE(common::HoldsMemory(swap_file_.get()));
  ASSERT_TRUE(arena->SwapOut().ok());
  EXPECT_TRUE(common::HoldsMemory(swap_file_.get()));
  arena->Detach();
  EXPECT_EQ(swap_.used_bytes(), 0u) << "it is the next worker's";
  EXPECT_EQ(job_->used(0), 0u);

  arena = Successor();
  EXPECT_TRUE(arena->swapped());
  EXPECT_EQ(swap_.used_bytes(), 16 * MiB);
  EXPECT_EQ(job_->used(0), 16 * MiB);
  EXPECT_EQ(recording_.used_bytes, 0u);
  ASSERT_EQ(arena->SwapIn(), CUDA_SUCCESS);
  EXPECT_FALSE(common::HoldsMemory(swap_file_.get()));
  ExpectFilled(base_, 14 * MiB, 3);
  ExpectFilled(base_ + 20 * MiB, 2 * MiB, 5);
  EXPECT_EQ(arena->bytes(), 16 * MiB);
  EXPECT_EQ(swap_.used_bytes(), 0u);
}

// A worker that is lost on the way leaves both: what the file has is complete, extents may not be.
TEST_F(ArenaTest, ExtentsInTheSwapFilesPlaceGo) {
  std::unique_ptr<Arena> arena = Successor();
  EXPECT_EQ(arena->Map(0, base_, 4 * MiB), CUDA_SUCCESS);
  Fill(base_, 4 * MiB, 3);
  ASSERT_TRUE(arena->SwapOut().ok());
  arena->Detach();
  recording_.AddExtent({1000, {OwnerKind::kSession, 7}, 2 * MiB, base_ + 2 * MiB, base_});
  recording_.AddExtent({1001, {OwnerKind::kSession, 7}, 2 * MiB, base_ + 8 * MiB, base_ + 8 * MiB});
  arena = Successor();
  EXPECT_EQ(recording_.used_bytes, 2 * MiB) << "the other one is not in the file";
  ASSERT_EQ(arena->SwapIn(), CUDA_SUCCESS);
  ExpectFilled(base_, 4 * MiB, 3);
  EXPECT_EQ(arena->bytes(), 6 * MiB);
}

TEST_F(ArenaTest, WhatIsKeptOfALaneIsInTheFile) {
  std::unique_ptr<Arena> arena = Successor();
  ASSERT_EQ(lanes_.Join(arena->lane_member(), 5, 0), CUDA_SUCCESS);
  ASSERT_EQ(arena->ReserveLane(0, 4 * MiB), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Enter(arena->lane_member()), CUDA_SUCCESS);
  const CUdeviceptr kept = arena->ephemeral_base();
  Fill(kept, 4 * MiB, 3);
  ASSERT_EQ(lanes_.Keep(arena->lane_member(), kept, 4 * MiB), CUDA_SUCCESS);
  lanes_.Exit(arena->lane_member());
  ASSERT_TRUE(arena->SwapOut().ok());
  arena->Detach();
  arena = Successor();
  EXPECT_EQ(job_->used(0), 4 * MiB);
  ASSERT_EQ(arena->SwapIn(), CUDA_SUCCESS);
  ExpectFilled(kept, 4 * MiB, 3);
}

// Random ranges, swaps and moves: what was written stays, and the books agree.
TEST_F(ArenaTest, RandomMovesKeepTheBytes) {
  std::unique_ptr<Arena> arena = Successor();
  std::mt19937_64 random(harness::Seed());
  std::map<CUdeviceptr, std::pair<uint64_t, unsigned>> live;
  uint64_t sum = 0;
  for (int round = 0; round < 150; ++round) {
    const CUdeviceptr address = base_ + random() % 32 * 2 * MiB;
    const uint64_t bytes = (1 + random() % 4) * 2 * MiB;
    if (random() % 4 != 0) {
      if (arena->Map(0, address, bytes) != CUDA_SUCCESS) continue;
      live[address] = {bytes, random()};
      sum += bytes;
      Fill(address, bytes, live[address].second);
    } else if (live.count(address) != 0) {
      sum -= live[address].first;
      live.erase(address);
      ASSERT_EQ(arena->Free(address), CUDA_SUCCESS);
    } else if (random() % 4 == 0) {
      ASSERT_TRUE(arena->SwapOut().ok());
      ASSERT_EQ(recording_.used_bytes, 0u);
      ASSERT_EQ(arena->SwapIn(), CUDA_SUCCESS);
    } else {
      const bool swapped = random() % 2 == 0;
      if (swapped) {
        ASSERT_TRUE(arena->SwapOut().ok());
      }
      arena->Detach();
      arena = Successor();
      ASSERT_EQ(arena->swapped_bytes(), swapped ? sum : 0);
      if (swapped) {
        ASSERT_EQ(arena->SwapIn(), CUDA_SUCCESS);
      }
    }
    ASSERT_EQ(recording_.used_bytes, sum);
    ASSERT_EQ(arena->bytes(), sum);
    ASSERT_EQ(job_->used(0), sum);
    for (const auto& [start, range] : live) ExpectFilled(start, range.first, range.second);
  }
}

}  // namespace
}  // namespace worker
