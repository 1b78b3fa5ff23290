// Device, pinned, registered, managed and stream-ordered memory; copies and memsets.
#include <cstdlib>
#include <numeric>
#include <vector>

#include "tests/softgpu/driver_test.h"

namespace softgpu::testing {
namespace {

class MemoryTest : public DriverTest {
 protected:
  size_t Free() {
    size_t free = 0, total = 0;
    EXPECT_OK(cuMemGetInfo(&free, &total));
    return free;
  }
};

TEST_F(MemoryTest, AccountingIsExact) {
  const size_t before = Free();
  CUdeviceptr small = 0, large = 0, pointer = 0;
  ASSERT_OK(cuMemAlloc(&small, 1));
  EXPECT_EQ(before - Free(), 512u);
  ASSERT_OK(cuMemAlloc(&large, 3 << 20));
  EXPECT_EQ(before - Free(), 512u + (3 << 20));
  EXPECT_EQ(small % 256, 0u);
  EXPECT_EQ(large % 256, 0u);
  EXPECT_CU(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&pointer, before));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&pointer, 0));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemFree(large + 4));
  ASSERT_OK(cuMemFree(small));
  ASSERT_OK(cuMemFree(large));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemFree(large));
  EXPECT_OK(cuMemFree(0));
  EXPECT_EQ(Free(), before);
}

TEST_F(MemoryTest, ManySmallBlocksAreDisjoint) {
  std::vector<CUdeviceptr> blocks(5000);
  const size_t before = Free();
  for (size_t i = 0; i < blocks.size(); ++i) {
    ASSERT_OK(cuMemAlloc(&blocks[i], 700));
    ASSERT_OK(cuMemsetD32(blocks[i], static_cast<unsigned>(i), 175));
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    unsigned words[175];
    ASSERT_OK(cuMemcpyDtoH(words, blocks[i], sizeof words));
    ASSERT_EQ(words[0], i);
    ASSERT_EQ(words[174], i);
    ASSERT_OK(cuMemFree(blocks[i]));
  }
  EXPECT_EQ(Free(), before);
}

TEST_F(MemoryTest, AddressRangeAndAttributes) {
  CUdeviceptr pointer = 0, base = 0;
  size_t bytes = 0;
  ASSERT_OK(cuMemAlloc(&pointer, 1000));
  ASSERT_OK(cuMemGetAddressRange(&base, &bytes, pointer + 500));
  EXPECT_EQ(base, pointer);
  EXPECT_EQ(bytes, 1000u);
  unsigned type = 0;
  ASSERT_OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer + 999));
  EXPECT_EQ(type, unsigned{CU_MEMORYTYPE_DEVICE});
  CUcontext context = nullptr;
  ASSERT_OK(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, pointer));
  EXPECT_EQ(context, context_);
  int local = 0;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                            reinterpret_cast<CUdeviceptr>(&local)));
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  int ordinal = 7;
  void* data[] = {&type, &ordinal};
  ASSERT_OK(cuPointerGetAttributes(2, attributes, data, reinterpret_cast<CUdeviceptr>(&local)));
  EXPECT_EQ(type, 0u);
  EXPECT_EQ(ordinal, -2);
}

TEST_F(MemoryTest, CopiesOfEveryDirection) {
  constexpr size_t kBytes = 1 << 20;
  std::vector<unsigned char> source(kBytes), back(kBytes);
  std::iota(source.begin(), source.end(), 0);
  CUdeviceptr a = 0, b = 0;
  ASSERT_OK(cuMemAlloc(&a, kBytes));
  ASSERT_OK(cuMemAlloc(&b, kBytes));
  ASSERT_OK(cuMemcpyHtoD(a, source.data(), kBytes));
  ASSERT_OK(cuMemcpyDtoD(b, a, kBytes));
  ASSERT_OK(cuMemcpyDtoH(back.data(), b, kBytes));
  EXPECT_EQ(source, back);
  ASSERT_OK(cuMemsetD8(b, 0, kBytes));
  ASSERT_OK(cuMemcpy(b, reinterpret_cast<CUdeviceptr>(source.data()), kBytes));
  ASSERT_OK(cuMemcpyPeer(a, context_, b, context_, kBytes));
  ASSERT_OK(cuMemcpy(reinterpret_cast<CUdeviceptr>(back.data()), a, kBytes));
  EXPECT_EQ(source, back);
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(a + 1, source.data(), kBytes));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(back.data(), 0x1000, 4));
  EXPECT_OK(cuMemcpyHtoD(a, source.data(), 0));
}

TEST_F(MemoryTest, PageableSourceMayChangeAfterAnAsynchronousCopy) {
  CUstream stream = nullptr;
  ASSERT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (const size_t bytes : {size_t{4096}, size_t{1} << 20}) {
    CUdeviceptr to = 0;
    ASSERT_OK(cuMemAlloc(&to, bytes));
    std::vector<unsigned char> source(bytes, 1), back(bytes, 0);
    ASSERT_OK(cuMemcpyHtoDAsync(to, source.data(), bytes, stream));
    std::fill(source.begin(), source.end(), 2);
    ASSERT_OK(cuMemcpyDtoHAsync(back.data(), to, bytes, stream));
    EXPECT_EQ(back, std::vector<unsigned char>(bytes, 1)) << "pageable destination: done on return";
  }
  ASSERT_OK(cuStreamDestroy(stream));
}

TEST_F(MemoryTest, BoxesKeepTheirMargins) {
  constexpr size_t kPitch = 64, kRows = 8, kPlanes = 3;
  CUdeviceptr device = 0;
  ASSERT_OK(cuMemAlloc(&device, kPitch * kRows * kPlanes));
  ASSERT_OK(cuMemsetD8(device, 0xee, kPitch * kRows * kPlanes));
  std::vector<unsigned char> source(5 * 2 * 2);
  std::iota(source.begin(), source.end(), 1);
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = source.data();
  copy.srcPitch = 5;
  copy.srcHeight = 2;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = device;
  copy.dstPitch = kPitch;
  copy.dstHeight = kRows;
  copy.dstXInBytes = 3;
  copy.dstY = 1;
  copy.dstZ = 1;
  copy.WidthInBytes = 5;
  copy.Height = 2;
  copy.Depth = 2;
  ASSERT_OK(cuMemcpy3D(&copy));
  std::vector<unsigned char> all(kPitch * kRows * kPlanes);
  ASSERT_OK(cuMemcpyDtoH(all.data(), device, all.size()));
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t x = i % kPitch, y = i / kPitch % kRows, z = i / kPitch / kRows;
    const bool inside = x >= 3 && x < 8 && y >= 1 && y < 3 && z >= 1 && z < 3;
    const int expected = inside ? static_cast<int>(1 + (x - 3) + 5 * (y - 1) + 10 * (z - 1)) : 0xee;
    ASSERT_EQ(all[i], expected) << x << " " << y << " " << z;
  }
}

TEST_F(MemoryTest, MemsetsOfEveryWidth) {
  CUdeviceptr device = 0;
  ASSERT_OK(cuMemAlloc(&device, 256));
  ASSERT_OK(cuMemsetD8(device, 0x11, 256));
  ASSERT_OK(cuMemsetD2D16(device, 64, 0x2233, 4, 2));
  ASSERT_OK(cuMemsetD32Async(device + 128, 0x44556677, 2, nullptr));
  unsigned char bytes[256];
  ASSERT_OK(cuMemcpyDtoH(bytes, device, 256));
  EXPECT_EQ(bytes[0], 0x33);
  EXPECT_EQ(bytes[7], 0x22);
  EXPECT_EQ(bytes[8], 0x11);
  EXPECT_EQ(bytes[64], 0x33);
  EXPECT_EQ(bytes[72], 0x11);
  EXPECT_EQ(bytes[128], 0x77);
  EXPECT_EQ(bytes[136], 0x11);
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(device + 1, 0, 1));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(device, 0, 4096));
}

TEST_F(MemoryTest, PinnedAndRegisteredMemory) {
  void* pinned = nullptr;
  ASSERT_OK(cuMemHostAlloc(&pinned, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
  CUdeviceptr device = 0;
  ASSERT_OK(cuMemHostGetDevicePointer(&device, pinned, 0));
  EXPECT_EQ(device, reinterpret_cast<CUdeviceptr>(pinned));
  unsigned flags = 0, type = 0;
  ASSERT_OK(cuMemHostGetFlags(&flags, pinned));
  EXPECT_EQ(flags, unsigned{CU_MEMHOSTALLOC_DEVICEMAP});
  ASSERT_OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
  EXPECT_EQ(type, unsigned{CU_MEMORYTYPE_HOST});
  ASSERT_OK(cuMemFreeHost(pinned));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(pinned));

  std::vector<char> own(8192);
  ASSERT_OK(cuMemHostRegister(own.data(), own.size(), CU_MEMHOSTREGISTER_DEVICEMAP));
  EXPECT_CU(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(own.data() + 1, 1, 0));
  ASSERT_OK(cuMemHostGetDevicePointer(&device, own.data(), 0));
  ASSERT_OK(cuMemsetD8(device, 5, own.size()));
  EXPECT_EQ(own[8191], 5);
  ASSERT_OK(cuMemHostUnregister(own.data()));
  EXPECT_CU(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(own.data()));
}

TEST_F(MemoryTest, ManagedMemoryIsOneForHostAndDevice) {
  CUdeviceptr managed = 0;
  ASSERT_OK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
  ASSERT_OK(cuMemsetD32(managed, 42, 4));
  ASSERT_OK(cuCtxSynchronize());
  EXPECT_EQ(*reinterpret_cast<int*>(managed), 42);
  CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  EXPECT_OK(cuMemPrefetchAsync(managed, 4096, location, 0, nullptr));
  unsigned is_managed = 0;
  ASSERT_OK(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed));
  EXPECT_EQ(is_managed, 1u);
  ASSERT_OK(cuMemFree(managed));
}

TEST_F(MemoryTest, StreamOrderedMemoryComesBackInOrder) {
  CUmemoryPool pool = nullptr;
  ASSERT_OK(cuDeviceGetDefaultMemPool(&pool, 0));
  CUstream stream = nullptr;
  ASSERT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const size_t before = Free();
  // More in total than the device has: frees must be reached while allocating.
  for (int i = 0; i < 40; ++i) {
    CUdeviceptr pointer = 0;
    ASSERT_OK(cuMemAllocAsync(&pointer, 256 << 20, stream)) << i;
    ASSERT_OK(cuMemsetD8Async(pointer, 1, 1, stream));
    ASSERT_OK(cuMemFreeAsync(pointer, stream));
  }
  ASSERT_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(Free(), before);
  cuuint64_t used = 1, high = 0;
  ASSERT_OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  ASSERT_OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &high));
  EXPECT_EQ(used, 0u);
  EXPECT_GE(high, size_t{256} << 20);
  ASSERT_OK(cuStreamDestroy(stream));
}

}  // namespace
}  // namespace softgpu::testing
