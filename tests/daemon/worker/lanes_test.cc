// Lanes over a recorded driver whose memory keeps its bytes: who sees whose.
#include "daemon/worker/lanes.h"

#include <gtest/gtest.h>

#include <iterator>

#include "tests/daemon/worker/lanes_fixture.h"

namespace worker {
namespace {

TEST_F(LanesTest, AllMembersSeeTheSameExtentsInTheSameOrder) {
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(Size(&lanes_, member(0), 3 * MiB), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Join(member(1), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(Size(&lanes_, member(1), 100 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(recording_.used_bytes, 100 * MiB) << "one lane, as large as its largest need";
  EXPECT_EQ(job_->used(0), 104 * MiB) << "a job's share is what its sessions reserved";
  for (const Piece& part : lanes_.Look(kLane).parts) {
    EXPECT_LE(part.extent.bytes, kLaneExtentBytesMax);
    EXPECT_EQ(HandleAt(Base(0) + part.address), part.extent.handle);
    EXPECT_EQ(HandleAt(Base(1) + part.address), part.extent.handle);
  }
  lanes_.Leave(member(0));
  lanes_.Leave(member(1));
  EXPECT_TRUE(recording_.mapped.empty());
  EXPECT_EQ(recording_.used_bytes, 100 * MiB) << "the daemon ends a lane";
  EXPECT_EQ(job_->used(0), 0u);
}

TEST_F(LanesTest, ASessionsOwnLaneEndsWithIt) {
  ASSERT_EQ(lanes_.Join(member(0), ipc::control::OwnLaneOf(1), 0), CUDA_SUCCESS);
  ASSERT_EQ(Size(&lanes_, member(0), 4 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(lanes_.Keep(member(0), Base(0), kStep), CUDA_SUCCESS);
  EXPECT_EQ(recording_.used_bytes, 4 * MiB) << "nobody else is there to take memory from";
  EXPECT_TRUE(lanes_.Drop(member(0), Base(0)));
  lanes_.Leave(member(0));
  EXPECT_EQ(recording_.used_bytes, 0u);
}

TEST_F(LanesTest, LanesNeverSpanUsersOrDevices) {
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  const std::unique_ptr<LaneMember> other = Member(3, 1001);
  EXPECT_EQ(lanes_.Join(other.get(), kLane, 0), CUDA_ERROR_NOT_PERMITTED);
  EXPECT_EQ(lanes_.Join(member(1), kLane, 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(LanesTest, WhatOutlivesItsIterationLeavesTheLane) {
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Join(member(1), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(Size(&lanes_, member(0), 48 * MiB), CUDA_SUCCESS);  // 32 + 16
  ASSERT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
  recording_.At(Base(0) + 33 * MiB) = 77;
  ASSERT_EQ(lanes_.Keep(member(0), Base(0) + 33 * MiB, MiB), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Keep(member(0), Base(0) + 35 * MiB, MiB), CUDA_SUCCESS);
  lanes_.Exit(member(0));
  ASSERT_EQ(lanes_.Enter(member(1)), CUDA_SUCCESS);
  recording_.At(Base(1) + 33 * MiB) = 1;
  EXPECT_EQ(recording_.At(Base(0) + 33 * MiB), 77) << "nobody else writes what is kept";
  EXPECT_EQ(recording_.used_bytes, 64 * MiB);
  EXPECT_EQ(HandleAt(Base(0)), HandleAt(Base(1))) << "the rest is shared";
  lanes_.Exit(member(1));
  EXPECT_TRUE(lanes_.Drop(member(0), Base(0) + 33 * MiB));
  EXPECT_EQ(lanes_.Reclaim(member(0)), 0u) << "another block lives in it";
  EXPECT_TRUE(lanes_.Drop(member(0), Base(0) + 35 * MiB));
  EXPECT_FALSE(lanes_.Drop(member(0), Base(0) + 35 * MiB));
  EXPECT_EQ(recording_.At(Base(0) + 33 * MiB), 77) << "it may be in use again";
  EXPECT_TRUE(member(0)->has_spare());
  EXPECT_EQ(lanes_.Reclaim(member(0)), 16 * MiB);
  EXPECT_EQ(recording_.used_bytes, 48 * MiB);
  EXPECT_EQ(HandleAt(Base(0) + 32 * MiB), HandleAt(Base(1) + 32 * MiB));
}

TEST_F(LanesTest, WhoCanNotMapItsLaneAgainIsNotInside) {
  ipc::DriverTable driver = *environment_.driver;
  environment_.driver = &driver;
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  EXPECT_FALSE(lanes_.Inside(member(0)));
  ASSERT_EQ(Size(&lanes_, member(0), 4 * MiB), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Keep(member(0), Base(0), kStep), CUDA_SUCCESS);
  ASSERT_TRUE(lanes_.Drop(member(0), Base(0)));
  EXPECT_TRUE(lanes_.Inside(member(0)));
  driver.cuMemMap = [](CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
                       unsigned long long) { return CUDA_ERROR_OUT_OF_MEMORY; };
  EXPECT_EQ(lanes_.Reclaim(member(0)), 4 * MiB);
  EXPECT_FALSE(lanes_.Inside(member(0)));
  EXPECT_EQ(lanes_.Enter(member(0)), CUDA_ERROR_OUT_OF_MEMORY);
  driver.cuMemMap = RecordingEnvironment().driver->cuMemMap;
  EXPECT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
  EXPECT_TRUE(lanes_.Inside(member(0)));
  EXPECT_EQ(recording_.mapped.count(Base(0)), 1u);
  lanes_.Leave(member(0));
}

TEST_F(LanesTest, WhatIsKeptLiesAcrossAnotherLanesExtents) {
  constexpr uint64_t kOther = kLane + 1;
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(Size(&lanes_, member(0), 2 * MiB), CUDA_SUCCESS);
  ASSERT_EQ(Size(&lanes_, member(0), 6 * MiB), CUDA_SUCCESS);  // 2 + 4
  ASSERT_EQ(lanes_.Join(member(1), kOther, 0), CUDA_SUCCESS);
  ASSERT_EQ(Size(&lanes_, member(1), 8 * MiB), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
  recording_.At(Base(0) + 2 * MiB) = 77;
  ASSERT_EQ(lanes_.Keep(member(0), Base(0) + 2 * MiB, MiB), CUDA_SUCCESS);
  lanes_.Leave(member(0));
  ASSERT_EQ(lanes_.Join(member(0), kOther, 0), CUDA_SUCCESS);
  ASSERT_EQ(Size(&lanes_, member(0), 8 * MiB), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
  recording_.At(Base(0)) = recording_.At(Base(0) + 7 * MiB) = 1;
  EXPECT_EQ(recording_.At(Base(0) + 2 * MiB), 77);
  lanes_.Exit(member(0));
  ASSERT_EQ(lanes_.Enter(member(1)), CUDA_SUCCESS);
  recording_.At(Base(1) + 2 * MiB) = 1;
  EXPECT_EQ(recording_.At(Base(0) + 2 * MiB), 77);
}

TEST_F(LanesTest, WithoutFreshMemoryTheSessionKeepsTheLane) {
  recording_.capacity_bytes = 4 * MiB;
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(Size(&lanes_, member(0), 4 * MiB), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
  EXPECT_EQ(lanes_.Keep(member(0), Base(0), kStep), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(lanes_.Pinned(member(0)));
  EXPECT_TRUE(lanes_.Drop(member(0), Base(0)));
  EXPECT_FALSE(lanes_.Pinned(member(0)));
}

TEST_F(LanesTest, GrowsAllOrNothingAndShrinksAtItsEnd) {
  recording_.capacity_bytes = 64 * MiB;
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(Size(&lanes_, member(0), 32 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(Size(&lanes_, member(0), 128 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(recording_.used_bytes, 32 * MiB);
  EXPECT_EQ(Size(&lanes_, member(0), 60 * MiB), CUDA_SUCCESS);
  lanes_.Shrink(kLane, 40 * MiB);
  EXPECT_EQ(recording_.used_bytes, 32 * MiB)
      << "an extent is not cut, and no more is left than asked for";
  ASSERT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
  EXPECT_EQ(recording_.used_bytes, 60 * MiB) << "it has what it needs when it is inside";
  lanes_.Exit(member(0));
  lanes_.Shrink(kLane, 0);
  EXPECT_EQ(recording_.used_bytes, 0u);
  EXPECT_TRUE(recording_.mapped.empty());
}

// Those whom lanewayd puts into a lane join it when they first ask for some of it.
TEST_F(LanesTest, ALaneThatNobodyHasJoinedShrinks) {
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(Size(&lanes_, member(0), 8 * MiB), CUDA_SUCCESS);
  ASSERT_EQ(Size(&lanes_, member(0), 24 * MiB), CUDA_SUCCESS);
  lanes_.Leave(member(0));
  ASSERT_EQ(recording_.used_bytes, 24 * MiB) << "it is the next one's";
  lanes_.Shrink(kLane, 10 * MiB);
  EXPECT_EQ(recording_.used_bytes, 8 * MiB);
  ASSERT_EQ(lanes_.Join(member(1), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Enter(member(1)), CUDA_SUCCESS);
  EXPECT_EQ(recording_.mapped.count(Base(1)), 1u);
  EXPECT_EQ(recording_.used_bytes, 8 * MiB);
}

// It may have ended before they came, and lanewayd believes it empty.
TEST_F(LanesTest, TheLastToLeaveALaneSaysSo) {
  struct Link : DaemonLink {
    void Post(const ipc::control::WorkerToDaemon& message) override { posted.push_back(message); }
    uint64_t Daemon() const override { return 1; }
    std::vector<ipc::control::WorkerToDaemon> posted;
  } link;
  environment_.daemon = &link;
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Join(member(1), kLane, 0), CUDA_SUCCESS);
  lanes_.Leave(member(0));
  EXPECT_TRUE(link.posted.empty());
  lanes_.Leave(member(1));
  ASSERT_EQ(link.posted.size(), 1u);
  EXPECT_EQ(std::get<ipc::control::LaneChanged>(link.posted[0]).lane, kLane);
  environment_.daemon = nullptr;
}

TEST_F(LanesTest, WhatItHadBeforeALimitItHasAgain) {
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(Size(&lanes_, member(0), 8 * MiB), CUDA_SUCCESS);
  lanes_.Leave(member(0));
  job_->SetLimit(4 * MiB);
  ASSERT_EQ(lanes_.Join(member(0), kLane + 1, 0), CUDA_SUCCESS);
  EXPECT_EQ(lanes_.ReserveAgain(member(0), 8 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(job_->used(0), 8 * MiB);
  ASSERT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
  EXPECT_TRUE(recording_.mapped.count(Base(0)) == 1 && recording_.used_bytes == 16 * MiB)
      << "its lane, beside the other";
  EXPECT_EQ(lanes_.Reserve(member(0), 10 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
}

// The addresses behind a lane's are the worker's own, and then another session's.
TEST_F(LanesTest, NobodyReservesMoreThanItsAddressesAgain) {
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  constexpr uint64_t kMost = ipc::limits::kEphemeralBytes;
  EXPECT_EQ(lanes_.ReserveAgain(member(0), kMost + 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(lanes_.ReserveAgain(member(0), ~uint64_t{0}), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(member(0)->reserved_bytes(), 0u);
  EXPECT_EQ(lanes_.ReserveAgain(member(0), kMost), CUDA_SUCCESS);
}

TEST_F(LanesTest, ManySmallExtentsBecomeFewUnderABudget) {
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  for (uint64_t bytes = kStep; bytes <= 64 * MiB; bytes += kStep) {
    ASSERT_EQ(Size(&lanes_, member(0), bytes), CUDA_SUCCESS);
  }
  EXPECT_EQ(lanes_.Look(kLane).parts.size(), 32u);
  EXPECT_EQ(lanes_.Coalesce(kLane, 16 * MiB), 16 * MiB);
  EXPECT_LE(lanes_.Look(kLane).parts.size(), 25u);
  lanes_.Coalesce(kLane, 1024 * MiB);
  EXPECT_LE(lanes_.Look(kLane).parts.size(), 6u);
  EXPECT_EQ(recording_.used_bytes, 64 * MiB);
  EXPECT_EQ(recording_.mapped.size(), lanes_.Look(kLane).parts.size());
}

// A member that keeps something could not map one extent that reaches over it, and would have a
// hole in its place.
TEST_F(LanesTest, WhereAMemberKeepsSomethingExtentsStayAsTheyAre) {
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Join(member(1), kLane, 0), CUDA_SUCCESS);
  for (uint64_t bytes = kStep; bytes <= 16 * MiB; bytes += kStep) {
    ASSERT_EQ(Size(&lanes_, member(0), bytes), CUDA_SUCCESS);
  }
  ASSERT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
  recording_.At(Base(0) + 2 * MiB) = 77;
  ASSERT_EQ(lanes_.Keep(member(0), Base(0) + 2 * MiB, kStep), CUDA_SUCCESS);
  lanes_.Exit(member(0));
  EXPECT_EQ(lanes_.Coalesce(kLane, 1024 * MiB), 12 * MiB) << "4 + 8 after the one that is kept";
  ASSERT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
  for (uint64_t at = 0; at < 16 * MiB; at += kStep) {
    const CUdeviceptr address = Base(0) + at;
    const auto next = recording_.mappings.upper_bound(address);
    ASSERT_TRUE(next != recording_.mappings.begin());
    EXPECT_LT(address - std::prev(next)->first, std::prev(next)->second.bytes) << at / MiB;
  }
  EXPECT_EQ(recording_.At(Base(0) + 2 * MiB), 77);
}

// Of a block that reaches over more than is kept already, only the rest is taken from the lane.
TEST_F(LanesTest, WhatIsKeptAlreadyIsNotTakenAgain) {
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  for (uint64_t bytes = kStep; bytes <= 8 * MiB; bytes += kStep) {
    ASSERT_EQ(Size(&lanes_, member(0), bytes), CUDA_SUCCESS);
  }
  ASSERT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Keep(member(0), Base(0) + kStep, kStep), CUDA_SUCCESS);
  recording_.At(Base(0) + kStep) = 77;
  EXPECT_EQ(recording_.used_bytes, 10 * MiB);
  ASSERT_EQ(lanes_.Keep(member(0), Base(0) + kStep, 2 * kStep), CUDA_SUCCESS);
  EXPECT_EQ(recording_.used_bytes, 12 * MiB);
  EXPECT_EQ(job_->used(0), 12 * MiB);
  EXPECT_EQ(recording_.At(Base(0) + kStep), 77);
}

TEST_F(LanesTest, WhatCanNotBeKeptWholeTakesNothing) {
  recording_.capacity_bytes = 10 * MiB;
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  for (uint64_t bytes = kStep; bytes <= 8 * MiB; bytes += kStep) {
    ASSERT_EQ(Size(&lanes_, member(0), bytes), CUDA_SUCCESS);
  }
  ASSERT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
  EXPECT_EQ(lanes_.Keep(member(0), Base(0), 2 * kStep), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(recording_.used_bytes, 8 * MiB) << "the first fresh extent is given back";
  EXPECT_EQ(job_->used(0), 8 * MiB);
}

// An extent of the lane is mapped as a whole: what is kept in its place goes together.
TEST_F(LanesTest, WhatIsKeptInThePlaceOfOneExtentGoesTogether) {
  constexpr uint64_t kOther = kLane + 1;
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  for (uint64_t bytes = kStep; bytes <= 6 * MiB; bytes += kStep) {
    ASSERT_EQ(Size(&lanes_, member(0), bytes), CUDA_SUCCESS);
  }
  ASSERT_EQ(lanes_.Join(member(1), kOther, 0), CUDA_SUCCESS);
  ASSERT_EQ(Size(&lanes_, member(1), 2 * MiB), CUDA_SUCCESS);
  ASSERT_EQ(Size(&lanes_, member(1), 6 * MiB), CUDA_SUCCESS);  // 2 + 4
  ASSERT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
  const CUdeviceptr first = Base(0) + 2 * MiB, second = Base(0) + 4 * MiB;
  ASSERT_EQ(lanes_.Keep(member(0), first, kStep), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Keep(member(0), second, kStep), CUDA_SUCCESS);
  lanes_.Leave(member(0));
  ASSERT_EQ(lanes_.Join(member(0), kOther, 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
  EXPECT_TRUE(lanes_.Drop(member(0), first));
  EXPECT_EQ(lanes_.Reclaim(member(0)), 0u) << "the lane could not be mapped there";
  EXPECT_NE(HandleAt(first), 0u);
  EXPECT_TRUE(lanes_.Drop(member(0), second));
  EXPECT_EQ(lanes_.Reclaim(member(0)), 4 * MiB);
  EXPECT_EQ(HandleAt(first), HandleAt(Base(1) + 2 * MiB));
}

TEST_F(LanesTest, AShrunkLaneIsNoLargerThanWasAskedFor) {
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  for (uint64_t bytes = kStep; bytes <= 16 * MiB; bytes += kStep) {
    ASSERT_EQ(Size(&lanes_, member(0), bytes), CUDA_SUCCESS);
  }
  for (const uint64_t mebibytes : {14, 8, 6, 2, 0}) {
    const uint64_t bytes = mebibytes * MiB;
    lanes_.Shrink(kLane, bytes);
    EXPECT_EQ(recording_.used_bytes, bytes) << "neither a part too much nor one too few";
    EXPECT_EQ(member(0)->mapped_bytes(), bytes);
  }
}

TEST_F(LanesTest, WhoWaitsOutsideLetsItGrowWhenItEnters) {
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Reserve(member(0), 8 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(recording_.used_bytes, 0u);
  EXPECT_EQ(job_->used(0), 8 * MiB);
  ASSERT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
  EXPECT_EQ(recording_.used_bytes, 8 * MiB);
}

TEST_F(LanesTest, AnotherWorkersChangesAreTakenOver) {
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(Size(&lanes_, member(0), 4 * MiB), CUDA_SUCCESS);
  LaneTable elsewhere(&environment_);
  ASSERT_EQ(elsewhere.Join(member(1), kLane, 0), CUDA_SUCCESS);
  EXPECT_EQ(HandleAt(Base(1)), HandleAt(Base(0))) << "the same memory in both";
  ASSERT_EQ(Size(&elsewhere, member(1), 8 * MiB), CUDA_SUCCESS);
  ASSERT_EQ(elsewhere.Enter(member(1)), CUDA_SUCCESS);
  recording_.At(Base(1)) = 5;
  ASSERT_EQ(elsewhere.Keep(member(1), Base(1), kStep), CUDA_SUCCESS);
  EXPECT_EQ(HandleAt(Base(1)), HandleAt(Base(0))) << "it cannot know yet";
  lanes_.OnChanged(kLane);
  EXPECT_EQ(lanes_.Look(kLane).parts.size(), 2u);
  EXPECT_NE(HandleAt(Base(1)), HandleAt(Base(0))) << "nobody else has mapped what is kept";
  ASSERT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
  recording_.At(Base(0)) = 9;
  EXPECT_EQ(recording_.At(Base(1)), 5);
  elsewhere.OnChanged(0);
  EXPECT_EQ(elsewhere.Look(kLane).parts.size(), 2u);
}

TEST_F(LanesTest, TheNextEntersWhenNobodyIsInside) {
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Join(member(1), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
  EXPECT_EQ(lanes_.Enter(member(1)), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(lanes_.Look(kLane).holder, 1u);
  lanes_.Exit(member(0));
  EXPECT_EQ(lanes_.Enter(member(1)), CUDA_SUCCESS);
}

TEST_F(LanesTest, NobodyEntersWhereBlocksOfAnotherLive) {
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Join(member(1), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(Size(&lanes_, member(0), 4 * MiB), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Enter(member(0)), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Pin(member(0), Base(0), kStep), CUDA_SUCCESS);
  lanes_.Exit(member(0));
  EXPECT_EQ(lanes_.Enter(member(1)), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(lanes_.Look(kLane).holder, 0u);
  EXPECT_TRUE(lanes_.Drop(member(0), Base(0)));
  EXPECT_EQ(lanes_.Enter(member(1)), CUDA_SUCCESS);
}

// Whatever a client sends when: who is outside neither takes memory out of the lane nor keeps the
// lane.
TEST_F(LanesTest, WhoIsOutsideKeepsNothing) {
  ASSERT_EQ(lanes_.Join(member(0), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Join(member(1), kLane, 0), CUDA_SUCCESS);
  ASSERT_EQ(Size(&lanes_, member(0), 8 * MiB), CUDA_SUCCESS);
  for (const bool another_is_inside : {false, true}) {
    if (another_is_inside) {
      ASSERT_EQ(lanes_.Enter(member(1)), CUDA_SUCCESS);
    }
    EXPECT_EQ(lanes_.FreshBytesFor(member(0), Base(0), kStep), 0u);
    EXPECT_EQ(lanes_.Keep(member(0), Base(0), kStep), CUDA_ERROR_ILLEGAL_STATE);
    EXPECT_EQ(lanes_.Pin(member(0), Base(0), kStep), CUDA_ERROR_ILLEGAL_STATE);
    EXPECT_FALSE(lanes_.Pinned(member(0)));
    EXPECT_TRUE(lanes_.Kept(member(0)).empty());
  }
  EXPECT_FALSE(lanes_.Shrink(kLane, 0)) << "not under who is inside";
  EXPECT_EQ(recording_.used_bytes, 8 * MiB);
}

}  // namespace
}  // namespace worker
