// Registered memory with addresses for the device: which pages may be exchanged, and what becomes
// of what is in them.
#include "shim/registered_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "shim/own_mappings.h"
#include "tests/shim/fixture.h"

namespace shim_test {
namespace {

using shim::Mapping;

constexpr size_t kPage = 4096;

TEST(OwnMappings, LinesOfTheKernel) {
  const std::optional<Mapping> heap =
      shim::ParseMapping("563cd900a000-563cd902b000 rw-p 00001000 00:00 77       [heap]");
  ASSERT_TRUE(heap.has_value());
  EXPECT_EQ(heap->begin, 0x563cd900a000u);
  EXPECT_EQ(heap->end, 0x563cd902b000u);
  EXPECT_EQ(heap->offset, 0x1000u);
  EXPECT_EQ(heap->inode, 77u);
  EXPECT_TRUE(heap->read_write);
  EXPECT_EQ(heap->kind, Mapping::Kind::kPrivate);
  const auto kind = [](const char* line) { return shim::ParseMapping(line).value().kind; };
  EXPECT_EQ(kind("1000-2000 rw-p 00000000 00:00 0 "), Mapping::Kind::kPrivate);
  EXPECT_EQ(kind("1000-2000 rw-p 00000000 00:00 0"), Mapping::Kind::kPrivate);
  EXPECT_EQ(kind("1000-2000 rw-s 00000000 00:01 5 /memfd:x (deleted)"), Mapping::Kind::kShared);
  EXPECT_EQ(kind("1000-2000 rw-p 00000000 00:00 0   [stack]"), Mapping::Kind::kStack);
  EXPECT_EQ(kind("1000-2000 r--p 00000000 00:00 0   [vvar]"), Mapping::Kind::kSpecial);
  EXPECT_EQ(kind("1000-2000 rw-p 00000000 00:0e 9   /anon_hugepage (deleted)"),
            Mapping::Kind::kSpecial);
  EXPECT_EQ(kind("1000-2000 rw-p 00000000 00:06 9   /dev/mem"), Mapping::Kind::kSpecial);
  for (const char* const line :
       {"", "1000", "1000-", "2000-1000 rw-p 00000000 00:00 0", "1000-2000 rw", "1000-2000 rw-p 0",
        "1000-2000 rw-p 00000000 0:0", "1000-2000 rw-p 00000000 00:00 x", "x-y rw-p 0 0:0 0"}) {
    EXPECT_FALSE(shim::ParseMapping(line).has_value()) << line;
  }
}

TEST(OwnMappings, WhatCannotBeExchanged) {
  const Mapping own = {Mapping::Kind::kPrivate, true, 0x1000, 0x3000};
  const Mapping next = {Mapping::Kind::kPrivate, true, 0x3000, 0x5000};
  const auto fixed = [](std::vector<Mapping> all, uint64_t stack = 0) {
    return shim::WhyFixed(all, 0x2000, 0x4000, stack).value_or("");
  };
  EXPECT_EQ(fixed({own, next}), "");
  EXPECT_NE(fixed({}), "");
  EXPECT_NE(fixed({own}), "") << "the second page isn't there";
  EXPECT_NE(fixed({next}), "");
  EXPECT_NE(fixed({own, next}, 0x4fff), "") << "a stack";
  for (const Mapping::Kind kind :
       {Mapping::Kind::kShared, Mapping::Kind::kStack, Mapping::Kind::kSpecial}) {
    Mapping other = next;
    other.kind = kind;
    EXPECT_NE(fixed({own, other}), "");
  }
  Mapping constant = next;
  constant.read_write = false;
  EXPECT_NE(fixed({own, constant}), "");
}

class Registered : public InContext {
 protected:
  void SetUp() override {
    InContext::SetUp();
    pages_ = static_cast<char*>(
        mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(pages_, MAP_FAILED);
    for (size_t i = 0; i < kPages * kPage; ++i) pages_[i] = Byte(i);
  }
  void TearDown() override {
    InContext::TearDown();
    munmap(pages_, kPages * kPage);
  }
  static char Byte(size_t i) { return static_cast<char>(i * 7 + i / kPage); }
  bool IsWhole() const {
    for (size_t i = 0; i < kPages * kPage; ++i) {
      if (pages_[i] != Byte(i)) return false;
    }
    return true;
  }
  char* Register(size_t offset, size_t bytes, unsigned flags) {
    CUdeviceptr device = 0;
    EXPECT_EQ(local::cuMemHostRegister_v2(pages_ + offset, bytes, flags), CUDA_SUCCESS);
    EXPECT_EQ(local::cuMemHostGetDevicePointer_v2(&device, pages_ + offset, 0), CUDA_SUCCESS);
    return reinterpret_cast<char*>(device);
  }

  static constexpr size_t kPages = 1100;  // several pieces
  char* pages_ = nullptr;
};

TEST_F(Registered, BothAddressesAreTheSameBytes) {
  constexpr size_t kOffset = kPage + 100, kBytes = (kPages - 3) * kPage;
  char* const device = Register(kOffset, kBytes, CU_MEMHOSTREGISTER_DEVICEMAP);
  EXPECT_NE(device, pages_ + kOffset);
  EXPECT_TRUE(IsWhole());
  EXPECT_EQ(std::memcmp(device, pages_ + kOffset, kBytes), 0);
  for (const size_t at : {size_t{0}, kPage, 600 * kPage, kBytes - 1}) {
    device[at] = static_cast<char>(~device[at]);
    EXPECT_EQ(pages_[kOffset + at], device[at]) << at;
    pages_[kOffset + at] = Byte(kOffset + at);
    EXPECT_EQ(pages_[kOffset + at], device[at]) << at;
  }
  EXPECT_EQ(local::cuMemHostUnregister(pages_ + kOffset), CUDA_SUCCESS);
  EXPECT_TRUE(IsWhole());
  EXPECT_EQ(local::cuMemHostUnregister(pages_ + kOffset), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

TEST_F(Registered, AContextTakesItsRegistrationsAlong) {
  const int unmapped = CountOf("PinnedFree");
  Register(0, kPage, 0);
  EXPECT_EQ(local::cuCtxDestroy_v2(context_), CUDA_SUCCESS);
  ASSERT_EQ(local::cuCtxCreate_v2(&context_, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(CountOf("PinnedFree"), unmapped + 1);
  EXPECT_TRUE(IsWhole());
  EXPECT_EQ(local::cuMemHostUnregister(pages_), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

TEST_F(Registered, WithoutAnAddressNothingIsExchanged) {
  const int mapped = CountOf("PinnedAlloc");
  EXPECT_EQ(local::cuMemHostRegister_v2(pages_, kPage, 0), CUDA_SUCCESS);
  EXPECT_EQ(local::cuMemHostUnregister(pages_), CUDA_SUCCESS);
  EXPECT_EQ(CountOf("PinnedAlloc"), mapped);
}

// Registered without the flag, so that the pages are exchanged for the first who asks.
TEST_F(Registered, ThreadsThatAskForTheAddressAtOnceGetTheSame) {
  constexpr size_t kThreads = 4;
  ASSERT_EQ(local::cuMemHostRegister_v2(pages_, kPages * kPage, 0), CUDA_SUCCESS);
  std::array<CUdeviceptr, kThreads> devices = {};
  std::array<CUresult, kThreads> results = {};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, i, &devices, &results] {
      EXPECT_EQ(local::cuCtxSetCurrent(context_), CUDA_SUCCESS);
      results[i] = local::cuMemHostGetDevicePointer_v2(&devices[i], pages_, 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < kThreads; ++i) {
    EXPECT_EQ(results[i], CUDA_SUCCESS);
    EXPECT_EQ(devices[i], devices[0]);
  }
  EXPECT_EQ(local::cuMemHostUnregister(pages_), CUDA_SUCCESS);
  EXPECT_TRUE(IsWhole());
}

TEST_F(Registered, WhatTheWorkerRefusesStays) {
  FailNext("cuMemHostRegister_v2", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(local::cuMemHostRegister_v2(pages_, kPage, CU_MEMHOSTREGISTER_DEVICEMAP),
            CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(IsWhole());
  EXPECT_EQ(local::cuMemHostRegister_v2(pages_, kPage, CU_MEMHOSTREGISTER_DEVICEMAP), CUDA_SUCCESS);
  EXPECT_EQ(local::cuMemHostUnregister(pages_), CUDA_SUCCESS);
}

TEST_F(Registered, OtherPagesAreRefused) {
  const auto result = [](void* address, size_t bytes) {
    return local::cuMemHostRegister_v2(address, bytes, CU_MEMHOSTREGISTER_DEVICEMAP);
  };
  char own[100];
  EXPECT_EQ(result(own, sizeof own), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(result(pages_ + kPage, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(result(pages_, 100), CUDA_SUCCESS);
  EXPECT_EQ(result(pages_ + 200, 100), CUDA_ERROR_NOT_SUPPORTED) << "one page can't be in two";
  EXPECT_EQ(local::cuMemHostUnregister(pages_), CUDA_SUCCESS);
  EXPECT_TRUE(IsWhole());
}

TEST_F(Registered, CopiesReadItInTheOrderOfTheirStream) {
  char* const device = Register(0, 8 * kPage, CU_MEMHOSTREGISTER_DEVICEMAP);
  const auto seen = [](const char* address, size_t bytes) {
    return reinterpret_cast<char*>(
        shim::RegisteredMemory::Process().Seen(reinterpret_cast<uint64_t>(address), bytes));
  };
  EXPECT_EQ(seen(pages_ + 10, 8 * kPage - 10), device + 10);
  EXPECT_EQ(seen(pages_ + 10, 8 * kPage - 9), pages_ + 10) << "not all of it";
  EXPECT_EQ(seen(pages_ + 8 * kPage, 1), pages_ + 8 * kPage);
  CUdeviceptr memory = 0;
  ASSERT_EQ(local::cuMemAlloc_v2(&memory, kPage), CUDA_SUCCESS);
  const int direct = CountOf("CopyDevice");
  EXPECT_EQ(local::cuMemcpyHtoDAsync_v2(memory, pages_, kPage, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(CountOf("CopyDevice"), direct + 1) << "its bytes are not read before";
  EXPECT_EQ(local::cuMemFree_v2(memory), CUDA_SUCCESS);
  EXPECT_EQ(local::cuMemHostUnregister(pages_), CUDA_SUCCESS);
}

TEST_F(Registered, AChildHasPagesOfItsOwn) {
  Register(100, 4 * kPage, CU_MEMHOSTREGISTER_DEVICEMAP);
  const pid_t child = fork();
  if (child == 0) {
    const bool whole = IsWhole();
    std::memset(pages_, 0, 6 * kPage);
    _exit(whole ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(IsWhole());
  EXPECT_EQ(local::cuMemHostUnregister(pages_ + 100), CUDA_SUCCESS);
}

TEST_F(Registered, WhatIsMappedThereNextIsLeftAlone) {
  Register(0, 4 * kPage, CU_MEMHOSTREGISTER_DEVICEMAP);
  ASSERT_EQ(mmap(pages_ + kPage, kPage, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            pages_ + kPage);
  EXPECT_EQ(local::cuMemHostUnregister(pages_), CUDA_SUCCESS);
  EXPECT_EQ(pages_[kPage], 0) << "what came there next";
  std::memset(pages_ + kPage, 1, kPage);
  for (size_t i = 0; i < kPage; ++i) pages_[kPage + i] = Byte(kPage + i);
  EXPECT_TRUE(IsWhole());
}

}  // namespace
}  // namespace shim_test
