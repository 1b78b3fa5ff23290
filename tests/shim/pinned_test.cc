// Pinned memory: what the client keeps of what the program frees.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "shim/pinned_spare.h"
#include "tests/shim/fixture.h"

namespace shim_test {
namespace {

class Pinned : public InContext {
 protected:
  void* Allocate(size_t bytes) {
    void* address = nullptr;
    EXPECT_EQ(local::cuMemAllocHost_v2(&address, bytes), CUDA_SUCCESS);
    return address;
  }
  void Free(void* address) { EXPECT_EQ(local::cuMemFreeHost(address), CUDA_SUCCESS); }
};

TEST_F(Pinned, FreedMemoryIsGivenAgainZeroed) {
  void* const first = Allocate(10000);
  std::memset(first, 1, 10000);
  Free(first);
  void* const second = Allocate(10000);
  EXPECT_EQ(first, second);
  EXPECT_EQ(*static_cast<char*>(second), 0);
  Free(second);
}

TEST_F(Pinned, AllocatingWhatWasFreedIsNoCall) {
  Free(Allocate(20000));
  const int mapped = CountOf("PinnedAlloc"), unmapped = CountOf("PinnedFree");
  for (int i = 0; i < 5; ++i) {
    void* const one = Allocate(20000 - static_cast<size_t>(i));  // of as many pages
    void* const other = Allocate(20000);
    EXPECT_NE(one, other);
    Free(one);
    Free(other);
  }
  EXPECT_EQ(CountOf("PinnedAlloc"), mapped + 1);  // the second at the same time
  EXPECT_EQ(CountOf("PinnedFree"), unmapped);
}

TEST_F(Pinned, LargeRangesAreNotKept) {
  const int unmapped = CountOf("PinnedFree");
  Free(Allocate(shim::PinnedSpare::kRangeBytesMax + 1));
  EXPECT_EQ(CountOf("PinnedFree"), unmapped + 1);
}

TEST_F(Pinned, TheRangeKeptLongestMakesRoom) {
  const size_t count = shim::PinnedSpare::kRangesMax + 1;
  std::vector<void*> all;
  for (size_t i = 0; i < count; ++i) all.push_back(Allocate(30000));
  for (void* const one : all) Free(one);
  const int mapped = CountOf("PinnedAlloc"), unmapped = CountOf("PinnedFree");
  void* const freed_last = Allocate(30000);
  EXPECT_EQ(freed_last, all.back());
  Free(freed_last);
  EXPECT_EQ(CountOf("PinnedAlloc"), mapped);
  EXPECT_EQ(CountOf("PinnedFree"), unmapped);
  for (void*& one : all) one = Allocate(30000);
  EXPECT_EQ(CountOf("PinnedAlloc"), mapped + 1);  // that of the first that was freed
  for (void* const one : all) Free(one);
}

TEST_F(Pinned, WhatIsKeptGoesBeforeAnAllocationFails) {
  Free(Allocate(40000));
  const int mapped = CountOf("PinnedAlloc"), unmapped = CountOf("PinnedFree");
  FailNext("cuMemHostRegister_v2", CUDA_ERROR_OUT_OF_MEMORY);
  void* const large = Allocate(50000);
  EXPECT_EQ(CountOf("PinnedAlloc"), mapped + 2);
  EXPECT_GE(CountOf("PinnedFree"), unmapped + 1);
  Free(large);
}

TEST_F(Pinned, WithNothingKeptAFailureIsTold) {
  (void)shim::PinnedSpare::Process().Clear();
  FailNext("cuMemHostRegister_v2", CUDA_ERROR_OUT_OF_MEMORY);
  void* address = nullptr;
  EXPECT_EQ(local::cuMemAllocHost_v2(&address, 60000), CUDA_ERROR_OUT_OF_MEMORY);
}

}  // namespace
}  // namespace shim_test
