// Virtual memory management: hints, mappings, handles.
#include <fcntl.h>
#include <unistd.h>

#include "tests/softgpu/virtual_memory.h"

namespace softgpu::testing {
namespace {

class VirtualMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(cuInit(0)); }  // no context: none of this needs one
};

TEST_F(VirtualMemoryTest, Granularity) {
  const CUmemAllocationProp properties = Properties();
  size_t bytes = 0;
  ASSERT_OK(cuMemGetAllocationGranularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  EXPECT_EQ(bytes, size_t{2} << 20);
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&handle, 4096, &properties, 0));
  EXPECT_CU(CUDA_ERROR_OUT_OF_MEMORY, cuMemCreate(&handle, size_t{5} << 30, &properties, 0));
}

TEST_F(VirtualMemoryTest, HintsInTheSlotsAreHonoured) {
  CUdeviceptr first = 0, second = 0;
  ASSERT_OK(cuMemAddressReserve(&first, ipc::limits::kDeviceArenaBytes, 0, kHint, 0));
  EXPECT_EQ(first, kHint);
  ASSERT_OK(cuMemAddressReserve(&second, kBytes, 0, kHint, 0)) << "taken: another range";
  EXPECT_NE(second, kHint);
  EXPECT_GE(second, ipc::limits::kSlotsEnd);
  ASSERT_OK(cuMemAddressFree(first, ipc::limits::kDeviceArenaBytes));
  ASSERT_OK(cuMemAddressFree(second, kBytes));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(second, kBytes));
}

TEST_F(VirtualMemoryTest, OneExtentAtTwoAddresses) {
  CUdeviceptr range = 0;
  ASSERT_OK(cuMemAddressReserve(&range, 2 * kBytes, 0, kHint, 0));
  const CUmemGenericAllocationHandle handle = Create(kBytes);
  ASSERT_OK(cuMemMap(range, kBytes, 0, handle, 0));
  ASSERT_OK(cuMemMap(range + kBytes, kBytes, 0, handle, 0));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemMap(range, kBytes, 0, handle, 0)) << "mapped already";
  ASSERT_OK(cuMemRelease(handle));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemRelease(handle));
  ASSERT_OK(Open(range, 2 * kBytes));
  *reinterpret_cast<volatile int*>(range + 8) = 77;  // the compiler can't know that both are one
  EXPECT_EQ(*reinterpret_cast<volatile int*>(range + kBytes + 8), 77);
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(range, kBytes / 2));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(range, 2 * kBytes)) << "still mapped";
  ASSERT_OK(cuMemUnmap(range, 2 * kBytes));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(range, kBytes));
  ASSERT_OK(cuMemAddressFree(range, 2 * kBytes));
}

TEST_F(VirtualMemoryTest, MemoryIsCountedWhileHandleOrMappingLives) {
  CUcontext context = nullptr;
  ASSERT_OK(cuCtxCreate(&context, nullptr, 0, 0));
  const auto free_bytes = [] {
    size_t free = 0, total = 0;
    EXPECT_OK(cuMemGetInfo(&free, &total));
    return free;
  };
  const size_t before = free_bytes();
  CUdeviceptr range = 0;
  ASSERT_OK(cuMemAddressReserve(&range, kBytes, 0, 0, 0));
  const CUmemGenericAllocationHandle handle = Create(kBytes);
  EXPECT_EQ(before - free_bytes(), kBytes);
  ASSERT_OK(cuMemMap(range, kBytes, 0, handle, 0));
  ASSERT_OK(cuMemRelease(handle));
  EXPECT_EQ(before - free_bytes(), kBytes);
  CUmemGenericAllocationHandle again = 0;
  ASSERT_OK(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(range + 100)));
  ASSERT_OK(cuMemRelease(again));
  int descriptor = -1;
  const CUmemGenericAllocationHandle own = Create(kBytes);
  ASSERT_OK(
      cuMemExportToShareableHandle(&descriptor, own, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  CUmemGenericAllocationHandle imported = 0;
  ASSERT_OK(cuMemImportFromShareableHandle(
      &imported, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)),
      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  EXPECT_EQ(before - free_bytes(), 2 * kBytes) << "an import is not counted";
  ASSERT_OK(cuMemRelease(imported));
  ASSERT_OK(cuMemRelease(own));
  close(descriptor);
  ASSERT_OK(cuMemUnmap(range, kBytes));
  EXPECT_EQ(before, free_bytes());
  ASSERT_OK(cuMemAddressFree(range, kBytes));
  ASSERT_OK(cuCtxDestroy(context));
}

TEST_F(VirtualMemoryTest, DescriptorsOfOthersAreRefused) {
  CUmemGenericAllocationHandle handle = 0;
  const int descriptor = open("/dev/null", O_RDWR);
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
            cuMemImportFromShareableHandle(
                &handle, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)),
                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(descriptor);
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
            cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(intptr_t{-1}),
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
}

}  // namespace
}  // namespace softgpu::testing
