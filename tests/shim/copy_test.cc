// Copies of every size and kind of memory.
#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "tests/shim/fixture.h"

namespace {

using Copy = shim_test::InContext;

std::vector<unsigned char> Noise(size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<unsigned char> noise(bytes);
  for (unsigned char& byte : noise) byte = static_cast<unsigned char>(random());
  return noise;
}

TEST_F(Copy, PageableOfEverySize) {
  CUdeviceptr address = 0;
  constexpr size_t kMax = (20u << 20) + 13;
  ASSERT_EQ(local::cuMemAlloc_v2(&address, kMax), CUDA_SUCCESS);
  const std::vector<unsigned char> source = Noise(kMax, 1);
  for (const size_t bytes :
       {size_t{0}, size_t{1}, size_t{4}, size_t{48u << 10}, size_t{48u << 10} + 1, size_t{1u << 20},
        size_t{1u << 20} + 1, size_t{5u << 20}, kMax}) {
    std::vector<unsigned char> back(bytes);
    ASSERT_EQ(local::cuMemcpyHtoD_v2(address, source.data(), bytes), CUDA_SUCCESS);
    ASSERT_EQ(local::cuMemcpyDtoH_v2(back.data(), address, bytes), CUDA_SUCCESS);
    EXPECT_TRUE(std::equal(back.begin(), back.end(), source.begin())) << bytes;
  }
}

TEST_F(Copy, TheProgramMayReuseItsMemoryAtOnce) {
  CUdeviceptr address = 0;
  CUstream stream = nullptr;
  constexpr size_t kBytes = 3u << 20;
  ASSERT_EQ(local::cuMemAlloc_v2(&address, kBytes), CUDA_SUCCESS);
  ASSERT_EQ(local::cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  std::vector<unsigned char> memory = Noise(kBytes, 2);
  const std::vector<unsigned char> before = memory;
  ASSERT_EQ(local::cuMemcpyHtoDAsync_v2(address, memory.data(), kBytes, stream), CUDA_SUCCESS);
  std::fill(memory.begin(), memory.end(), 0);
  ASSERT_EQ(local::cuMemcpyDtoHAsync_v2(memory.data(), address, kBytes, stream), CUDA_SUCCESS);
  EXPECT_EQ(memory, before);  // to pageable memory the call itself waits
}

// Client and worker are one process here, with the rings mapped once for each: ThreadSanitizer does
// not see the order that they make.
#if !defined(__SANITIZE_THREAD__)
TEST_F(Copy, PinnedMemoryIsCopiedWithoutStaging) {
  CUdeviceptr address = 0;
  void* pinned = nullptr;
  constexpr size_t kBytes = (1u << 20) + 5;
  ASSERT_EQ(local::cuMemAlloc_v2(&address, kBytes), CUDA_SUCCESS);
  ASSERT_EQ(local::cuMemHostAlloc(&pinned, kBytes, CU_MEMHOSTALLOC_PORTABLE), CUDA_SUCCESS);
  const std::vector<unsigned char> source = Noise(kBytes, 3);
  std::memcpy(pinned, source.data(), kBytes);
  const int staged = CountOf("CopyStagedIn") + CountOf("CopyStagedOut");
  ASSERT_EQ(local::cuMemcpyHtoD_v2(address, pinned, kBytes), CUDA_SUCCESS);
  ASSERT_EQ(local::cuCtxSynchronize(), CUDA_SUCCESS);
  std::memset(pinned, 0, kBytes);
  ASSERT_EQ(local::cuMemcpyDtoH_v2(pinned, address, kBytes), CUDA_SUCCESS);
  EXPECT_EQ(std::memcmp(pinned, source.data(), kBytes), 0);
  EXPECT_EQ(CountOf("CopyStagedIn") + CountOf("CopyStagedOut"), staged);
  CUdeviceptr same = 0;
  EXPECT_EQ(local::cuMemHostGetDevicePointer_v2(&same, pinned, 0), CUDA_SUCCESS);
  EXPECT_EQ(same, reinterpret_cast<CUdeviceptr>(pinned));
  unsigned type = 0;
  EXPECT_EQ(local::cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, same),
            CUDA_SUCCESS);
  EXPECT_EQ(type, unsigned{CU_MEMORYTYPE_HOST});
  EXPECT_EQ(local::cuMemFreeHost(pinned), CUDA_SUCCESS);
  EXPECT_EQ(local::cuMemFreeHost(pinned), CUDA_ERROR_INVALID_VALUE);
}
#endif

TEST_F(Copy, UnifiedAddressesTellTheDirection) {
  CUdeviceptr a = 0, b = 0;
  ASSERT_EQ(local::cuMemAlloc_v2(&a, 256), CUDA_SUCCESS);
  ASSERT_EQ(local::cuMemAlloc_v2(&b, 256), CUDA_SUCCESS);
  const std::vector<unsigned char> source = Noise(256, 4);
  std::vector<unsigned char> back(256), again(256);
  const auto bits = [](void* p) { return reinterpret_cast<CUdeviceptr>(p); };
  ASSERT_EQ(local::cuMemcpy(a, bits(const_cast<unsigned char*>(source.data())), 256), CUDA_SUCCESS);
  ASSERT_EQ(local::cuMemcpy(b, a, 256), CUDA_SUCCESS);
  ASSERT_EQ(local::cuMemcpy(bits(back.data()), b, 256), CUDA_SUCCESS);
  ASSERT_EQ(local::cuMemcpy(bits(again.data()), bits(back.data()), 256), CUDA_SUCCESS);
  EXPECT_EQ(again, source);
}

TEST_F(Copy, OutsideTheProgramsMemoryIsRefused) {
  CUdeviceptr address = 0;
  char bytes[64] = {};
  ASSERT_EQ(local::cuMemAlloc_v2(&address, 32), CUDA_SUCCESS);
  EXPECT_EQ(local::cuMemcpyHtoD_v2(address, bytes, 33), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(local::cuMemcpyHtoD_v2(address + (1u << 20), bytes, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(local::cuMemcpyHtoD_v2(0, bytes, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(local::cuMemcpyDtoH_v2(bytes, reinterpret_cast<CUdeviceptr>(bytes), 1),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(local::cuMemsetD8_v2(address, 0, 33), CUDA_ERROR_INVALID_VALUE);
  unsigned type = 0;
  EXPECT_EQ(local::cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                         reinterpret_cast<CUdeviceptr>(bytes)),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Copy, PitchedBothWays) {
  constexpr size_t kWidth = 100, kHeight = 300, kDevicePitch = 512, kHostPitch = 130;
  CUdeviceptr address = 0;
  ASSERT_EQ(local::cuMemAlloc_v2(&address, kDevicePitch * kHeight), CUDA_SUCCESS);
  std::vector<unsigned char> source = Noise(kHostPitch * kHeight, 5), back(kHostPitch * kHeight, 7);
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = source.data();
  copy.srcPitch = kHostPitch;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = address;
  copy.dstPitch = kDevicePitch;
  copy.WidthInBytes = kWidth;
  copy.Height = kHeight;
  ASSERT_EQ(local::cuMemcpy2D_v2(&copy), CUDA_SUCCESS);
  std::swap(copy.srcMemoryType, copy.dstMemoryType);
  copy.srcDevice = address;
  copy.srcPitch = kDevicePitch;
  copy.dstHost = back.data();
  copy.dstPitch = kHostPitch;
  ASSERT_EQ(local::cuMemcpy2DUnaligned_v2(&copy), CUDA_SUCCESS);
  for (size_t row = 0; row < kHeight; ++row) {
    EXPECT_EQ(std::memcmp(&back[row * kHostPitch], &source[row * kHostPitch], kWidth), 0);
    EXPECT_EQ(back[row * kHostPitch + kWidth], 7);  // between the rows nothing is written
  }
}

TEST_F(Copy, ThreadsShareTheStagingArea) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      ASSERT_EQ(local::cuCtxSetCurrent(context_), CUDA_SUCCESS);
      constexpr size_t kBytes = (6u << 20) + 3;
      CUdeviceptr address = 0;
      ASSERT_EQ(local::cuMemAlloc_v2(&address, kBytes), CUDA_SUCCESS);
      const std::vector<unsigned char> source = Noise(kBytes, t);
      std::vector<unsigned char> back(kBytes);
      for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(local::cuMemcpyHtoD_v2(address, source.data(), kBytes), CUDA_SUCCESS);
        ASSERT_EQ(local::cuMemcpyDtoH_v2(back.data(), address, kBytes), CUDA_SUCCESS);
        ASSERT_EQ(back, source);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
