// Extents and ranges for the tests of virtual memory.
#pragma once

#include "ipc/calls/limits.h"
#include "tests/softgpu/driver_test.h"

namespace softgpu::testing {

inline constexpr size_t kBytes = 4 << 20;
inline constexpr CUdeviceptr kHint = ipc::limits::kSlotBase + 3 * ipc::limits::kSlotBytes;

inline CUmemAllocationProp Properties() {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  return properties;
}

inline CUresult Open(CUdeviceptr address, size_t bytes) {
  CUmemAccessDesc access = {};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return cuMemSetAccess(address, bytes, &access, 1);
}

inline CUmemGenericAllocationHandle Create(size_t bytes) {
  const CUmemAllocationProp properties = Properties();
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_OK(cuMemCreate(&handle, bytes, &properties, 0));
  return handle;
}

}  // namespace softgpu::testing
