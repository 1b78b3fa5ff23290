// What a session may name and touch: against a model of bytes, and through the arena and lanes that
// map and unmap under it.
#include "daemon/worker/own_addresses.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <random>
#include <set>
#include <string>

#include "daemon/worker/device_write.h"
#include "daemon/worker/graph_piece.h"
#include "daemon/worker/lanes.h"
#include "ipc/calls/limits.h"
#include "ipc/driver_table.h"
#include "tests/daemon/worker/recording_driver.h"

namespace worker {
namespace {

using ipc::limits::MiB;

constexpr uint64_t kOwnBase = ipc::limits::kSlotBase;

TEST(BackedAddressesTest, CoversWhatTouchesAndNothingElse) {
  BackedAddresses backed;
  BackedView view(&backed, 0);
  backed.Add(kOwnBase, 2 * MiB);
  backed.Add(kOwnBase + 2 * MiB, 4 * MiB);
  backed.Add(kOwnBase + 8 * MiB, 2 * MiB);
  EXPECT_TRUE(view.Covers(kOwnBase, 6 * MiB));
  EXPECT_TRUE(view.Covers(kOwnBase + MiB, 5 * MiB));
  EXPECT_FALSE(view.Covers(kOwnBase, 6 * MiB + 1));
  EXPECT_FALSE(view.Covers(kOwnBase, 10 * MiB));
  EXPECT_FALSE(view.Covers(kOwnBase + 6 * MiB, 1));
  EXPECT_FALSE(view.Covers(kOwnBase - 1, 2));
  EXPECT_TRUE(view.Covers(kOwnBase + 10 * MiB - 1, 1));
  EXPECT_FALSE(view.Covers(kOwnBase, UINT64_MAX));
}

TEST(BackedAddressesTest, ARememberedRangeIsForgottenWhenSomethingGoes) {
  BackedAddresses backed;
  BackedView view(&backed, 0), other(&backed, 1);
  backed.Add(kOwnBase, 2 * MiB);
  backed.Add(kOwnBase + 2 * MiB, 2 * MiB);
  EXPECT_TRUE(view.Covers(kOwnBase, 4 * MiB));
  backed.Remove(kOwnBase + 2 * MiB, 2 * MiB);
  EXPECT_FALSE(view.Covers(kOwnBase, 4 * MiB));
  EXPECT_FALSE(view.Covers(kOwnBase + 2 * MiB, 1));
  EXPECT_TRUE(view.Covers(kOwnBase, 2 * MiB));
  EXPECT_FALSE(other.Covers(kOwnBase, 1));  // another's slot
  EXPECT_FALSE(other.Covers(kOwnBase + ipc::limits::kSlotBytes, 1));
  EXPECT_NE(view.removals(), 0u);
  EXPECT_EQ(other.removals(), 0u);
}

TEST(BackedAddressesTest, AgreesWithAModel) {
  std::mt19937 random(3);
  BackedAddresses backed;
  BackedView view(&backed, 0);
  std::set<unsigned> model;  // blocks of 1 MiB
  for (int step = 0; step < 20000; ++step) {
    const unsigned block = random() % 24;
    if (random() % 4 == 0) {
      const bool there = model.count(block) != 0;
      if (there) {
        backed.Remove(kOwnBase + block * MiB, MiB);
        model.erase(block);
      } else {
        backed.Add(kOwnBase + block * MiB, MiB);
        model.insert(block);
      }
    }
    const uint64_t from = random() % (24 * MiB), bytes = 1 + random() % (4 * MiB);
    bool all = true;
    for (uint64_t at = from / MiB; at <= (from + bytes - 1) / MiB; ++at) {
      all = all && model.count(static_cast<unsigned>(at)) != 0;
    }
    ASSERT_EQ(view.Covers(kOwnBase + from, bytes), all) << from << " " << bytes;
  }
}

class OwnAddressesTest : public testing::Test {
 protected:
  OwnAddressesTest() : recording_(FreshRecording()), environment_(RecordingEnvironment()) {
    recording_.capacity_bytes = 64 * MiB;
    environment_.lanes = &lanes_;
    environment_.swap = &swap_;
    environment_.backed = &backed_;
    std::string error;
    EXPECT_TRUE(arena_.Reserve(&error)) << error;
  }

  Recording& recording_;
  BackedAddresses backed_;
  Environment environment_;
  LaneTable lanes_{&environment_};
  SwapSpace swap_{64 * MiB};
  std::shared_ptr<JobMemory> job_ = std::make_shared<JobMemory>();
  Arena arena_{environment_, {7, 1000, job_}, 0};
  PinnedMemory pinned_{environment_, 0, -1};
  OwnAddresses addresses_{&arena_, &pinned_, &backed_, 0};
  const CUdeviceptr base_ = ipc::limits::kSlotBase;
};

TEST_F(OwnAddressesTest, AnArenaIsOwnedAndOnlyItsRangesAreBacked) {
  ASSERT_EQ(arena_.Map(0, base_ + 4 * MiB, 4 * MiB), CUDA_SUCCESS);
  EXPECT_TRUE(addresses_.Owns(base_ + 64 * MiB, 8));
  EXPECT_FALSE(addresses_.Backs(base_ + 64 * MiB, 8));
  EXPECT_TRUE(addresses_.Backs(base_ + 4 * MiB, 4 * MiB));
  EXPECT_FALSE(addresses_.Backs(base_ + 4 * MiB, 4 * MiB + 1));
  EXPECT_FALSE(addresses_.Backs(base_ + 4 * MiB - 1, 2));
  EXPECT_FALSE(addresses_.Owns(base_ - 1, 1));
  EXPECT_FALSE(addresses_.Owns(base_ + ipc::limits::kSlotBytes, 1));  // a neighbour's
  ASSERT_EQ(arena_.Free(base_ + 4 * MiB), CUDA_SUCCESS);
  EXPECT_FALSE(addresses_.Backs(base_ + 4 * MiB, 1));
}

TEST_F(OwnAddressesTest, AFreedRangeThatIsStillMappedIsNotBacked) {
  ASSERT_EQ(arena_.Map(0, base_, 4 * MiB), CUDA_SUCCESS);
  ASSERT_EQ(arena_.Map(0, base_ + 4 * MiB, 2 * MiB), CUDA_SUCCESS);
  ASSERT_TRUE(addresses_.Backs(base_ + 2 * MiB, 4 * MiB));
  const uint64_t losses = addresses_.losses();
  EXPECT_TRUE(addresses_.GiveUp(base_, 4 * MiB));
  EXPECT_NE(addresses_.losses(), losses) << "graphs look again at what they touch";
  EXPECT_FALSE(addresses_.GiveUp(base_, 4 * MiB)) << "freed twice";
  EXPECT_FALSE(addresses_.Backs(base_, 8));
  EXPECT_FALSE(addresses_.Backs(base_ + 4 * MiB - 1, 2));
  EXPECT_TRUE(addresses_.Backs(base_ + 4 * MiB, 2 * MiB));
  addresses_.Gone(base_);  // it could not be freed after all
  EXPECT_TRUE(addresses_.Backs(base_, 6 * MiB));
}

TEST_F(OwnAddressesTest, WhatIsOnTheHostIsNotBacked) {
  ASSERT_EQ(arena_.Map(0, base_, 4 * MiB), CUDA_SUCCESS);
  CUdeviceptr workspace = 0;
  ASSERT_EQ(arena_.Place(0, 2 * MiB, &workspace), CUDA_SUCCESS);
  EXPECT_TRUE(addresses_.Backs(workspace, 2 * MiB));
  ASSERT_TRUE(arena_.SwapOut().ok());
  EXPECT_FALSE(addresses_.Backs(base_, 1));
  EXPECT_FALSE(addresses_.Backs(workspace, 1));
  EXPECT_TRUE(addresses_.Owns(base_, 1));
  ASSERT_EQ(arena_.SwapIn(), CUDA_SUCCESS);
  EXPECT_TRUE(addresses_.Backs(base_, 4 * MiB));
}

TEST_F(OwnAddressesTest, ALaneIsBackedAsFarAsItGoes) {
  const CUdeviceptr lane = arena_.ephemeral_base();
  ASSERT_EQ(arena_.ReserveLane(0, 6 * MiB), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Enter(arena_.lane_member()), CUDA_SUCCESS);
  EXPECT_TRUE(addresses_.Backs(lane, 6 * MiB));
  EXPECT_FALSE(addresses_.Backs(lane + 64 * MiB, 1));
  lanes_.Exit(arena_.lane_member());
  lanes_.Leave(arena_.lane_member());
  EXPECT_FALSE(addresses_.Backs(lane, 1));
}

TEST_F(OwnAddressesTest, ASealedRangeIsNoCalls) {
  ASSERT_EQ(arena_.Map(0, base_, 4 * MiB), CUDA_SUCCESS);
  addresses_.Seal(base_, 2 * MiB);
  EXPECT_TRUE(addresses_.IsSealed(base_));
  EXPECT_FALSE(addresses_.Backs(base_, 1));
  EXPECT_FALSE(addresses_.Backs(base_ + 2 * MiB - 1, 2));
  EXPECT_TRUE(addresses_.Backs(base_ + 2 * MiB, 2 * MiB));
  EXPECT_TRUE(addresses_.GiveUp(base_, 2 * MiB));
  EXPECT_FALSE(addresses_.IsSealed(base_));
  EXPECT_FALSE(addresses_.GiveUp(base_, 2 * MiB)) << "it is freed already";
  EXPECT_FALSE(addresses_.Backs(base_, 1));
  addresses_.Gone(base_);
  EXPECT_TRUE(addresses_.Backs(base_, 4 * MiB));
}

TEST_F(OwnAddressesTest, VariablesGoWithTheirModule) {
  const CUmodule one = reinterpret_cast<CUmodule>(uintptr_t{8}),
                 two = reinterpret_cast<CUmodule>(uintptr_t{16});
  addresses_.AddVariable(one, 0x1000, 64);
  addresses_.AddVariable(two, 0x2000, 8);
  EXPECT_TRUE(addresses_.Backs(0x1000, 64));
  EXPECT_TRUE(addresses_.Backs(0x1010, 48));
  EXPECT_FALSE(addresses_.Backs(0x1010, 49));
  EXPECT_FALSE(addresses_.Backs(0xfff, 2));
  addresses_.ForgetModule(one);
  EXPECT_FALSE(addresses_.Backs(0x1000, 1));
  EXPECT_TRUE(addresses_.Backs(0x2000, 8));
}

TEST_F(OwnAddressesTest, AGraphOverFreedMemoryIsFound) {
  ASSERT_EQ(arena_.Map(0, base_, 2 * MiB), CUDA_SUCCESS);
  ASSERT_EQ(arena_.Map(0, base_ + 8 * MiB, 2 * MiB), CUDA_SUCCESS);
  TouchedSpans child, touched;
  child.Add({base_ + 8 * MiB, 4096});
  touched.Add({base_ + MiB, 64});
  touched.Add(child);
  EXPECT_TRUE(touched.AreBacked(&addresses_));
  EXPECT_TRUE(touched.AreBacked(&addresses_));
  ASSERT_EQ(arena_.Free(base_ + 8 * MiB), CUDA_SUCCESS);
  EXPECT_FALSE(touched.AreBacked(&addresses_));
  EXPECT_FALSE(touched.AreBacked(&addresses_));
  ASSERT_EQ(arena_.Map(0, base_ + 8 * MiB, 2 * MiB), CUDA_SUCCESS);
  EXPECT_TRUE(touched.AreBacked(&addresses_));
}

// No byte of a fill or copy may lie in memory that another session can have by now.
TEST_F(OwnAddressesTest, AllBytesOfAFillOrCopyInAGraphMustBeBacked) {
  ASSERT_EQ(arena_.Map(0, base_, 2 * MiB), CUDA_SUCCESS);
  ASSERT_EQ(arena_.Map(0, base_ + 8 * MiB, 2 * MiB), CUDA_SUCCESS);
  const uint64_t end = base_ + 2 * MiB, gap = base_ + 4 * MiB, other = base_ + 8 * MiB;
  const auto is_backed = [&](const DeviceWrite& write) {
    GraphBooks books;
    GraphPiece piece(ipc::NullDriver(), nullptr, &books);
    write.AddTo(0, &piece);
    return piece.touched().AreBacked(&addresses_);
  };
  EXPECT_TRUE(is_backed({.to = base_, .from = other, .elements = 2 * MiB}));
  EXPECT_FALSE(is_backed({.to = gap, .from = other, .elements = 64}));
  EXPECT_FALSE(is_backed({.to = base_, .from = gap, .elements = 64}));
  EXPECT_TRUE(is_backed({.to = end - 64, .from = other, .elements = 64}));
  EXPECT_FALSE(is_backed({.to = end - 64, .from = other, .elements = 65}));
  EXPECT_FALSE(is_backed({.to = base_, .from = end - 64, .elements = 65}));
  EXPECT_TRUE(is_backed({.to = end - 1024, .elements = 256, .element_bytes = 4}));
  EXPECT_FALSE(is_backed({.to = end - 1024, .elements = 257, .element_bytes = 4}));
  EXPECT_FALSE(is_backed({.to = gap, .elements = 1, .element_bytes = 1}));
}

}  // namespace
}  // namespace worker
