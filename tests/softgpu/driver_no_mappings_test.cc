// Unmapping on a machine that has no mapping left (vm.max_map_count). The program's own mmap stands
// before the C library's, which no sanitizer bears: such builds leave this file out.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "tests/softgpu/virtual_memory.h"

namespace {
bool no_mappings_left = false;  // as when there are vm.max_map_count of them
}  // namespace

// Takes the place of the C library's, for the software GPU, too.
extern "C" __attribute__((visibility("default"))) void* mmap(void* address, size_t bytes,
                                                             int protection, int flags, int fd,
                                                             off_t offset) {
  if (no_mappings_left && (flags & MAP_FIXED) != 0) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, fd, offset));
}

namespace softgpu::testing {
namespace {

// True when the byte can be read.
bool IsThere(CUdeviceptr address) {
  int ends[2] = {};
  EXPECT_EQ(pipe(ends), 0);
  const bool there = write(ends[1], reinterpret_cast<void*>(address), 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return there;
}

TEST(NoMappingsTest, UnmapsAllTheSame) {
  ASSERT_OK(cuInit(0));
  CUdeviceptr range = 0;
  ASSERT_OK(cuMemAddressReserve(&range, 2 * kBytes, 0, kHint, 0));
  const CUmemGenericAllocationHandle handle = Create(kBytes);
  ASSERT_OK(cuMemMap(range, kBytes, 0, handle, 0));
  ASSERT_OK(Open(range, kBytes));
  EXPECT_TRUE(IsThere(range));
  no_mappings_left = true;
  EXPECT_CU(CUDA_ERROR_OUT_OF_MEMORY, cuMemMap(range + kBytes, kBytes, 0, handle, 0));
  EXPECT_OK(cuMemUnmap(range, kBytes));
  no_mappings_left = false;
  EXPECT_FALSE(IsThere(range));
  EXPECT_FALSE(IsThere(range + kBytes));
  ASSERT_OK(cuMemMap(range, kBytes, 0, handle, 0)) << "what is still there is replaced";
  ASSERT_OK(Open(range, kBytes));
  EXPECT_TRUE(IsThere(range));
  ASSERT_OK(cuMemUnmap(range, kBytes));
  ASSERT_OK(cuMemRelease(handle));
  ASSERT_OK(cuMemAddressFree(range, 2 * kBytes));
}

}  // namespace
}  // namespace softgpu::testing
