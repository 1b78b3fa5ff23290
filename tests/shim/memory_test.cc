// Device memory as the client hands it out: what is local, what the worker is asked, where
// iterations are placed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "ipc/calls/limits.h"
#include "shim/client.h"
#include "shim/device_memory.h"
#include "shim/iterations/iterations.h"
#include "tests/shim/fixture.h"

namespace shim_test {
namespace {

class DeviceMemory : public InContext {
 protected:
  CUdeviceptr Allocate(size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(local::cuMemAlloc_v2(&address, bytes), CUDA_SUCCESS);
    return address;
  }
  void Free(CUdeviceptr address) { EXPECT_EQ(local::cuMemFree_v2(address), CUDA_SUCCESS); }
  void Work(CUdeviceptr address, CUstream stream = nullptr) {
    const uint64_t word = 7;
    EXPECT_EQ(local::cuMemcpyHtoDAsync_v2(address, &word, sizeof word, stream), CUDA_SUCCESS);
  }
  bool InLane(CUdeviceptr address) {
    return address - shim::Client::Process().arena_base() - ipc::limits::kEphemeralOffset <
           ipc::limits::kEphemeralBytes;
  }
  // The program says that an iteration begins with the next work.
  void Mark() { shim::iterations::Iterations::Process().Mark(ipc::BoundarySource::kHeader); }
};

TEST_F(DeviceMemory, APairAsksNobody) {
  Free(Allocate(4096));
  const int maps = CountOf("ArenaMap"), unmaps = CountOf("ArenaUnmap");
  for (int i = 0; i < 100; ++i) Free(Allocate(4096));
  EXPECT_EQ(CountOf("ArenaMap"), maps);
  EXPECT_EQ(CountOf("ArenaUnmap"), unmaps);
}

TEST_F(DeviceMemory, WhatIsCachedIsFreeInQueries) {
  size_t before = 0, after = 0, total = 0;
  const CUdeviceptr block = Allocate(8 << 20);
  ASSERT_EQ(local::cuMemGetInfo_v2(&before, &total), CUDA_SUCCESS);
  Free(block);
  ASSERT_EQ(local::cuMemGetInfo_v2(&after, &total), CUDA_SUCCESS);
  EXPECT_LE(after, total);
  EXPECT_GE(shim::DeviceMemory::Process().persistent().cached_bytes(0), uint64_t{8} << 20);
}

TEST_F(DeviceMemory, ARefusalPassesThrough) {
  FakeMemory::Process().SetDeviceBytes(0);
  CUdeviceptr address = 0;
  EXPECT_EQ(local::cuMemAlloc_v2(&address, 48 << 20), CUDA_ERROR_OUT_OF_MEMORY);
  FakeMemory::Process().SetDeviceBytes(FakeMemory::kDeviceBytes);
  Free(Allocate(48 << 20));
}

TEST_F(DeviceMemory, OneStreamNeedsNoJoin) {
  const int joins = CountOf("StreamsJoin");
  for (int i = 0; i < 10; ++i) {
    const CUdeviceptr block = Allocate(4096);
    Work(block);
    Free(block);
  }
  EXPECT_EQ(CountOf("StreamsJoin"), joins);
}

TEST_F(DeviceMemory, SeveralStreamsJoinOncePerRound) {
  CUstream first = nullptr, second = nullptr;
  ASSERT_EQ(local::cuStreamCreate(&first, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(local::cuStreamCreate(&second, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  const CUdeviceptr a = Allocate(4096), b = Allocate(4096);
  Work(a, first);
  Work(b, second);
  const int joins = CountOf("StreamsJoin");
  Free(a);
  Free(b);
  const CUdeviceptr c = Allocate(4096), d = Allocate(4096);
  EXPECT_EQ(CountOf("StreamsJoin"), joins + 1);
  Free(c);
  Free(d);
}

TEST_F(DeviceMemory, StreamOrderedReuseOnTheSameStreamNeedsNoJoin) {
  CUstream first = nullptr, second = nullptr;
  ASSERT_EQ(local::cuStreamCreate(&first, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(local::cuStreamCreate(&second, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  const int joins = CountOf("StreamsJoin");
  for (int i = 0; i < 10; ++i) {
    for (const CUstream stream : {first, second}) {
      CUdeviceptr block = 0;
      ASSERT_EQ(local::cuMemAllocAsync(&block, 4096, stream), CUDA_SUCCESS);
      Work(block, stream);
      ASSERT_EQ(local::cuMemFreeAsync(block, stream), CUDA_SUCCESS);
    }
  }
  EXPECT_EQ(CountOf("StreamsJoin"), joins);
}

// The program's iterations, from the third on, live in the lane, at the same addresses; what
// outlives one is kept for it until it is freed.
TEST_F(DeviceMemory, IterationsLiveInTheLane) {
  const CUdeviceptr weight = Allocate(1 << 20);
  std::vector<std::vector<CUdeviceptr>> seen;
  CUdeviceptr late = 0;
  for (int i = 0; i < 8; ++i) {
    Mark();
    Work(weight);
    std::vector<CUdeviceptr> mine = {Allocate(3 << 20), Allocate(1000), Allocate(70'000)};
    for (const CUdeviceptr block : mine) Work(block);
    const bool keep = i == 6;
    if (keep) late = mine[1];
    for (const CUdeviceptr block : mine) {
      if (block != late || !keep) Free(block);
    }
    seen.push_back(mine);
    if (i == 7) continue;
    EXPECT_EQ(InLane(mine[0]), i >= 2) << i;
  }
  EXPECT_EQ(seen[5], seen[4]);
  EXPECT_EQ(seen[6], seen[4]);
  EXPECT_EQ(CountOf("LaneKeep"), 1);
  EXPECT_EQ(CountOf("LaneDrop"), 0);
  EXPECT_FALSE(InLane(seen[7][1])) << "its class is corrected";
  EXPECT_NE(seen[7][0], late);
  Free(late);
  EXPECT_EQ(CountOf("LaneDrop"), 1);
  EXPECT_GE(CountOf("LaneReserve"), 1);
  EXPECT_FALSE(InLane(weight));
  Free(weight);
}

TEST_F(DeviceMemory, PoolsAccountForTheirBlocks) {
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  properties.maxSize = 16 << 20;
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(local::cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
  CUdeviceptr block = 0, more = 0;
  ASSERT_EQ(local::cuMemAllocFromPoolAsync(&block, 5 << 20, pool, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(local::cuMemAllocFromPoolAsync(&more, 12 << 20, pool, nullptr),
            CUDA_ERROR_OUT_OF_MEMORY);
  uint64_t value = 0;
  ASSERT_EQ(local::cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value),
            CUDA_SUCCESS);
  EXPECT_EQ(value, 5u << 20);
  CUmemoryPool found = nullptr;
  ASSERT_EQ(local::cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, block),
            CUDA_SUCCESS);
  EXPECT_EQ(found, pool);
  ASSERT_EQ(local::cuMemFreeAsync(block, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(local::cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value),
            CUDA_SUCCESS);
  EXPECT_EQ(value, 6u << 20);
  ASSERT_EQ(local::cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
  ASSERT_EQ(local::cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value),
            CUDA_SUCCESS);
  EXPECT_EQ(value, 0u);
  EXPECT_EQ(local::cuMemPoolDestroy(pool), CUDA_SUCCESS);
}

}  // namespace
}  // namespace shim_test
