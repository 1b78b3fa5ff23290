// The arena over a recorded driver: addresses, sharing of extents, exhaustion, and frees that wait.
#include "daemon/worker/arena.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "daemon/worker/deferred_frees.h"
#include "ipc/calls/limits.h"
#include "tests/worker/recording_driver.h"

namespace worker {
namespace {

using ipc::limits::MiB;

class ArenaTest : public testing::Test {
 protected:
  ArenaTest() : recording_(FreshRecording()), environment_(RecordingEnvironment()) {
    recording_.capacity_bytes = 64 * MiB;
    std::string error;
    EXPECT_TRUE(arena_.Reserve(&error)) << error;
  }
  CUdeviceptr Allocate(uint64_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(arena_.Allocate(0, bytes, &address), CUDA_SUCCESS);
    return address;
  }
  Recording& recording_;
  Environment environment_;
  Arena arena_{environment_, 1, 0};
};

TEST_F(ArenaTest, SmallBlocksShareOneExtent) {
  const CUdeviceptr a = Allocate(1), b = Allocate(1000);
  EXPECT_EQ(a % 512, 0u);
  EXPECT_EQ(b, a + 512);
  EXPECT_EQ(recording_.mapped.size(), 1u);
  EXPECT_EQ(arena_.Free(a), CUDA_SUCCESS);
  EXPECT_EQ(recording_.mapped.size(), 1u);
  EXPECT_EQ(arena_.Free(b), CUDA_SUCCESS);
  EXPECT_EQ(recording_.used_bytes, 0u);
}

TEST_F(ArenaTest, SaysWhenTheDeviceIsFull) {
  const CUdeviceptr all = Allocate(64 * MiB);
  CUdeviceptr address = 0;
  EXPECT_EQ(arena_.Allocate(0, 1, &address), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(arena_.Free(all), CUDA_SUCCESS);
  EXPECT_EQ(Allocate(64 * MiB), all) << "the same calls give the same addresses";
  EXPECT_EQ(arena_.Free(all + 512), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(ArenaTest, RangesAreBackedByFewExtentsAndNeverTwice) {
  const CUdeviceptr base = arena_.persistent_base();
  EXPECT_EQ(arena_.Map(0, base + 2 * MiB, 14 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(recording_.mapped,
            (std::set<CUdeviceptr>{base + 2 * MiB, base + 10 * MiB, base + 14 * MiB}));
  EXPECT_EQ(arena_.Map(0, base, 4 * MiB), CUDA_ERROR_INVALID_VALUE) << "the second half is backed";
  EXPECT_EQ(arena_.Map(0, base + 14 * MiB, 2 * MiB), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(arena_.Map(0, base, 2 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(arena_.Map(0, base + 16 * MiB, 64 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(arena_.bytes(), 16 * MiB) << "all or nothing";
  EXPECT_EQ(recording_.used_bytes, 16 * MiB);
  EXPECT_EQ(arena_.Free(base + 2 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(recording_.used_bytes, 2 * MiB);
}

TEST_F(ArenaTest, RangesLieInTheirPart) {
  const CUdeviceptr base = arena_.persistent_base();
  EXPECT_EQ(arena_.Map(0, base - 2 * MiB, 2 * MiB), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(arena_.Map(0, base + MiB, 2 * MiB), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(arena_.Map(0, base, MiB), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(arena_.Map(0, base, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(arena_.Map(0, arena_.ephemeral_base(), 2 * MiB), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(arena_.Map(0, arena_.ephemeral_base() - 2 * MiB, 4 * MiB), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(arena_.Map(0, base, ~uint64_t{0} - 2 * MiB + 1), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr own = 0;
  EXPECT_EQ(arena_.Place(0, 3 * MiB, &own), CUDA_SUCCESS);
  EXPECT_EQ(own, base + ipc::limits::kWorkerOffset);
}

TEST_F(ArenaTest, TheLaneGrowsInPlace) {
  EXPECT_EQ(arena_.GrowLane(0, 3 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(recording_.mapped, (std::set<CUdeviceptr>{arena_.ephemeral_base()}));
  EXPECT_EQ(arena_.GrowLane(0, 2 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(recording_.used_bytes, 4 * MiB) << "it is large enough";
  EXPECT_EQ(arena_.GrowLane(0, 100 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(arena_.GrowLane(1, 6 * MiB), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(arena_.GrowLane(0, 6 * MiB), CUDA_SUCCESS);
  EXPECT_EQ(recording_.mapped,
            (std::set<CUdeviceptr>{arena_.ephemeral_base(), arena_.ephemeral_base() + 4 * MiB}));
}

TEST_F(ArenaTest, LiveBlocksNeverOverlap) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  std::map<CUdeviceptr, uint64_t> live;
  for (int round = 0; round < 20'000; ++round) {
    if (random() % 2 == 0) {
      const uint64_t bytes = 1 + random() % (random() % 8 == 0 ? 6 * MiB : 40'000);
      CUdeviceptr address = 0;
      if (arena_.Allocate(0, bytes, &address) != CUDA_SUCCESS) continue;
      const auto next = live.lower_bound(address);
      ASSERT_TRUE(next == live.end() || address + bytes <= next->first);
      if (next != live.begin()) {
        const auto before = std::prev(next);
        ASSERT_LE(before->first + before->second, address);
      }
      live[address] = bytes;
    } else if (!live.empty()) {
      auto it = live.begin();
      std::advance(it, random() % live.size());
      ASSERT_EQ(arena_.Free(it->first), CUDA_SUCCESS);
      live.erase(it);
    }
    ASSERT_EQ(arena_.bytes(), recording_.used_bytes);
  }
  for (const auto& [address, bytes] : live) ASSERT_EQ(arena_.Free(address), CUDA_SUCCESS);
  EXPECT_EQ(recording_.used_bytes, 0u);
}

TEST_F(ArenaTest, FreedBlocksWaitForTheirWork) {
  DeferredFrees frees(environment_, &arena_);
  StreamTable streams(environment_, nullptr);
  StreamTable::Stream* const legacy = streams.Legacy(0);
  const CUdeviceptr block = Allocate(4 * MiB);
  recording_.busy_streams.insert(legacy->driver);
  recording_.unfinished_events.insert(reinterpret_cast<CUevent>(
      static_cast<uintptr_t>(recording_.next_handle)));  // the event that the free will create
  EXPECT_EQ(frees.Free(block, streams.All()), CUDA_SUCCESS);
  EXPECT_FALSE(frees.Poll());
  EXPECT_EQ(recording_.used_bytes, 4 * MiB);
  recording_.unfinished_events.clear();
  EXPECT_TRUE(frees.Poll());
  EXPECT_EQ(recording_.used_bytes, 0u);
}

}  // namespace
}  // namespace worker
