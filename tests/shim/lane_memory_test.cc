// What is placed in the lane, and what a boundary means for it, without a worker.
#include "shim/lane_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace shim {
namespace {

using arena::Range;
using Class = LaneMemory::Class;

constexpr uint64_t kBase = uint64_t{1} << 40;
constexpr uint64_t kMiB = 1 << 20;

class LaneMemoryTest : public ::testing::Test {
 protected:
  struct Block {
    Range range;
    LaneMemory::Freed freed;
  };

  // An allocation of `bytes` where the lane places it.
  Block Allocate(uint64_t bytes) {
    Block block;
    bool ephemeral = lane_.Predict(0, bytes) == Class::kEphemeral && lane_.IsOpen();
    block.range = {next_persistent_ += kMiB, bytes};
    if (ephemeral) {
      arena::Blocks::Taken taken;
      EXPECT_TRUE(lane_.Take(bytes, &taken));
      if (const uint64_t lane_bytes = lane_.BytesFor(taken); lane_bytes != 0) {
        lane_.SetDevice(0);
        lane_.Grow(lane_bytes);
        EXPECT_EQ(lane_.BytesFor(taken), 0u);
      }
      lane_.Enter();
      block.range = {taken.address, taken.bytes};
      block.freed.index = taken.index;
    }
    block.freed.base = block.range.base;
    block.freed.block_bytes = block.range.bytes;
    block.freed.ephemeral = ephemeral;
    block.freed.birth = lane_.OnAllocate(block.range, bytes, 0, ephemeral, operations_);
    return block;
  }
  bool Free(const Block& block) { return lane_.OnFree(block.freed, {}); }
  MemoryAtBoundary::Wishes Boundary() {
    MemoryAtBoundary::Wishes wishes;
    wishes.persistent_bytes = kMiB;
    lane_.OnBoundary(operations_, true, &wishes);
    ++operations_;
    return wishes;
  }
  // An iteration with one allocation that dies in it.
  Block Iterate() {
    const Block block = Allocate(kMiB);
    ++operations_;
    EXPECT_FALSE(Free(block));
    Boundary();
    return block;
  }
  // Until it is placed in the lane.
  void Learn() {
    for (int i = 0; i < 4; ++i) Iterate();
  }

  LaneMemory lane_{kBase, 64 * kMiB, true};
  uint64_t operations_ = 1;
  uint64_t next_persistent_ = kMiB;
};

TEST_F(LaneMemoryTest, EverythingIsPersistentUntilIterationsHaveTaught) {
  EXPECT_FALSE(Iterate().freed.ephemeral);
  Learn();
  const Block first = Iterate(), second = Iterate();
  EXPECT_TRUE(first.freed.ephemeral);
  EXPECT_EQ(first.range, second.range);  // the same address in every iteration
  EXPECT_EQ(lane_.blocks(), 0u);
}

TEST_F(LaneMemoryTest, ADisabledLaneTakesNothing) {
  LaneMemory off(kBase, 64 * kMiB, false);
  MemoryAtBoundary::Wishes wishes;
  off.OnBoundary(1, true, &wishes);
  EXPECT_FALSE(off.IsOpen());
}

TEST_F(LaneMemoryTest, WhatOutlivesItsIterationIsKeptOnceAndDroppedAtItsEnd) {
  Learn();
  const Block block = Allocate(kMiB);
  ASSERT_TRUE(block.freed.ephemeral);
  EXPECT_EQ(lane_.blocks(), 1u);
  ++operations_;
  const MemoryAtBoundary::Wishes wishes = Boundary();
  EXPECT_EQ(wishes.outlived, (std::vector<Range>{block.range}));
  EXPECT_EQ(lane_.blocks(), 0u);  // it no longer keeps the lane from other sessions
  EXPECT_EQ(lane_.wrong(), 1u);
  EXPECT_TRUE(Boundary().outlived.empty());
  EXPECT_TRUE(Free(block));
  EXPECT_EQ(lane_.blocks(), 0u);
}

TEST_F(LaneMemoryTest, WhatIsBornAfterTheLastOperationIsOfTheNextIteration) {
  Learn();
  ++operations_;
  const Block early = Allocate(kMiB);  // no operation comes after it
  ASSERT_TRUE(early.freed.ephemeral);
  EXPECT_TRUE(Boundary().outlived.empty());
  EXPECT_FALSE(Free(early));
}

TEST_F(LaneMemoryTest, ARefusedLaneIsClosedUntilTheBoundary) {
  Learn();
  arena::Blocks::Taken taken;
  ASSERT_TRUE(lane_.Take(32 * kMiB, &taken));
  ASSERT_NE(lane_.BytesFor(taken), 0u);
  lane_.Refuse(taken);
  EXPECT_FALSE(lane_.IsOpen());
  EXPECT_FALSE(Allocate(kMiB).freed.ephemeral);
  ++operations_;
  Boundary();
  EXPECT_TRUE(lane_.IsOpen());
}

TEST_F(LaneMemoryTest, BlocksOfLostIterationsAreKeptAtTheNextBoundary) {
  Learn();
  const Block block = Allocate(kMiB), other = Allocate(kMiB);
  ASSERT_TRUE(block.freed.ephemeral);
  lane_.OnLost();
  EXPECT_FALSE(lane_.recognised());
  EXPECT_FALSE(Allocate(kMiB).freed.ephemeral);
  Free(other);
  ++operations_;
  EXPECT_EQ(Boundary().outlived, (std::vector<Range>{block.range}));
  EXPECT_TRUE(Free(block));
}

TEST_F(LaneMemoryTest, TheLaneGoesWithTheLastContextOfItsDevice) {
  Learn();
  const Block block = Allocate(kMiB);
  ASSERT_TRUE(block.freed.ephemeral);
  EXPECT_FALSE(lane_.OnContextReset(1));
  EXPECT_EQ(lane_.blocks(), 1u);
  EXPECT_TRUE(lane_.OnContextReset(0));
  EXPECT_EQ(lane_.blocks(), 0u);
  EXPECT_EQ(lane_.lane_bytes(), 0u);
}

// Or the worker could hand the lane on before that work.
TEST_F(LaneMemoryTest, ABlockCountsUntilTheWorkerHasAllWorkThatUsesIt) {
  Learn();
  Block block = Allocate(kMiB);
  block.freed.sent = false;
  Free(block);
  EXPECT_EQ(lane_.blocks(), 1u);
  ++operations_;
  Boundary();
  EXPECT_EQ(lane_.blocks(), 1u);
  lane_.OnAllSent();
  EXPECT_EQ(lane_.blocks(), 0u);
}

TEST_F(LaneMemoryTest, WhatIsFreedRightAfterAWaitIsUsedAgainAtOnce) {
  const auto iterate = [this](bool waits) {
    const Block first = Allocate(kMiB);
    ++operations_;
    if (waits) lane_.OnWaited();
    Block freed = first;
    freed.freed.used = !waits;
    Free(freed);
    const Block second = Allocate(kMiB);
    ++operations_;
    Free(second);
    Boundary();
    return second.range == first.range;
  };
  lane_.HoldFreed(true);
  for (int i = 0; i < 9; ++i) iterate(true);
  EXPECT_TRUE(iterate(true));
  for (int i = 0; i < 9; ++i) iterate(false);
  EXPECT_FALSE(iterate(false));
  lane_.HoldFreed(false);
  EXPECT_TRUE(iterate(false));
}

TEST_F(LaneMemoryTest, OtherDevicesAreOutside) {
  Learn();
  EXPECT_EQ(lane_.Predict(0, kMiB), Class::kEphemeral);
  EXPECT_EQ(lane_.Predict(1, kMiB), Class::kPersistent);
}

}  // namespace
}  // namespace shim
