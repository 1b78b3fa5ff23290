// Managed memory: what the worker is asked for, and what the program is told.
#include <cstring>
#include <vector>

#include "tests/shim/fixture.h"

namespace shim_test {
namespace {

class Managed : public InContext {
 protected:
  CUdeviceptr Allocate(size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(local::cuMemAllocManaged(&address, bytes, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    return address;
  }
  void Free(CUdeviceptr address) { EXPECT_EQ(local::cuMemFree_v2(address), CUDA_SUCCESS); }
};

TEST_F(Managed, SmallBlocksShareARange) {
  const int mapped = CountOf("PinnedAlloc");
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 2000; ++i) {
    blocks.push_back(Allocate(100));
    std::memset(reinterpret_cast<void*>(blocks.back()), i, 100);
  }
  EXPECT_EQ(CountOf("PinnedAlloc"), mapped + 1);
  for (size_t i = 0; i < blocks.size(); ++i)
    EXPECT_EQ(*reinterpret_cast<unsigned char*>(blocks[i] + 99), static_cast<unsigned char>(i));
  for (const CUdeviceptr block : blocks) Free(block);
}

TEST_F(Managed, AnAllocationInALoopIsMappedOnce) {
  Free(Allocate(5 << 20));
  const int mapped = CountOf("PinnedAlloc");
  for (int i = 0; i < 10; ++i) Free(Allocate(5 << 20));
  EXPECT_LE(CountOf("PinnedAlloc"), mapped + 1);
}

TEST_F(Managed, EmptyRangesGoBack) {
  const int unmapped = CountOf("PinnedFree");
  std::vector<CUdeviceptr> blocks;
  for (int i = 0; i < 30; ++i) blocks.push_back(Allocate(4 << 20));  // more than the cache keeps
  for (const CUdeviceptr block : blocks) Free(block);
  EXPECT_GT(CountOf("PinnedFree"), unmapped + 10);
}

TEST_F(Managed, ACopyThatTheProgramWaitsForIsThere) {
  const CUdeviceptr managed = Allocate(100'000);
  const std::vector<char> host(100'000, 7);
  ASSERT_EQ(local::cuMemcpyHtoD_v2(managed, host.data(), host.size()), CUDA_SUCCESS);
  EXPECT_EQ(std::memcmp(reinterpret_cast<void*>(managed), host.data(), host.size()), 0);
  Free(managed);
}

TEST_F(Managed, WhatItIsNotIsRefused) {
  CUdeviceptr device = 0, managed = Allocate(3000);
  ASSERT_EQ(local::cuMemAlloc_v2(&device, 3000), CUDA_SUCCESS);
  EXPECT_EQ(local::cuMemPrefetchAsync(managed + 1000, 2000, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(local::cuMemPrefetchAsync(managed + 1000, 2001, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(local::cuMemPrefetchAsync(device, 8, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(local::cuMemAdvise(managed, ~size_t{0}, CU_MEM_ADVISE_SET_READ_MOSTLY, 0),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(local::cuStreamAttachMemAsync(nullptr, managed, 0, 9), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(local::cuMemAllocManaged(&managed, ~size_t{0}, CU_MEM_ATTACH_GLOBAL),
            CUDA_ERROR_OUT_OF_MEMORY);
  Free(managed);
  EXPECT_EQ(local::cuMemFree_v2(managed), CUDA_ERROR_INVALID_VALUE);
  Free(device);
}

TEST_F(Managed, AContextTakesItsMemoryWithIt) {
  CUcontext other = nullptr;
  ASSERT_EQ(local::cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  const CUdeviceptr managed = Allocate(3000);
  ASSERT_EQ(local::cuCtxDestroy_v2(other), CUDA_SUCCESS);
  ASSERT_EQ(local::cuCtxSetCurrent(context_), CUDA_SUCCESS);
  EXPECT_EQ(local::cuMemFree_v2(managed), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace shim_test
