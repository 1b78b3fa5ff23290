// A keeper over a driver of functions that only knows memory.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <set>

#include "daemon/keeper/keeper.h"
#include "tests/daemon/described_devices.h"

namespace keeper {
using ipc::control::ExtentRecord;
using ipc::control::Owner;
using ipc::control::OwnerKind;

inline constexpr uint64_t kMiB = 1 << 20;
inline constexpr uint64_t kDeviceBytes = 64 * kMiB;
inline std::set<CUmemGenericAllocationHandle> live;  // what the driver below has given
inline CUmemGenericAllocationHandle last_handle = 0;

inline common::Driver FakeDriver() {
  common::Driver driver;
  driver.cuInit = [](unsigned) { return CUDA_SUCCESS; };
  driver.cuDeviceGetCount = [](int* count) { return *count = 2, CUDA_SUCCESS; };
  driver.cuDeviceGet = [](CUdevice* device, int ordinal) {
    return *device = ordinal, CUDA_SUCCESS;
  };
  DescribeDevices(&driver);
  driver.cuDeviceTotalMem_v2 = [](size_t* bytes, CUdevice) {
    return *bytes = kDeviceBytes, CUDA_SUCCESS;
  };
  driver.cuMemGetAllocationGranularity = [](size_t* bytes, const CUmemAllocationProp*,
                                            CUmemAllocationGranularity_flags) {
    return *bytes = 2 * kMiB, CUDA_SUCCESS;
  };
  driver.cuMemCreate = [](CUmemGenericAllocationHandle* handle, size_t, const CUmemAllocationProp*,
                          unsigned long long) {
    live.insert(*handle = ++last_handle);
    return CUDA_SUCCESS;
  };
  driver.cuMemRelease = [](CUmemGenericAllocationHandle handle) {
    return live.erase(handle) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  };
  driver.cuMemExportToShareableHandle = [](void* fd, CUmemGenericAllocationHandle,
                                           CUmemAllocationHandleType, unsigned long long) {
    const int file = memfd_create("extent", MFD_CLOEXEC);
    std::memcpy(fd, &file, sizeof file);
    return CUDA_SUCCESS;
  };
  driver.cuMemImportFromShareableHandle = [](CUmemGenericAllocationHandle* handle, void*,
                                             CUmemAllocationHandleType) {
    live.insert(*handle = ++last_handle);
    return CUDA_SUCCESS;
  };
  driver.cuGetErrorName = [](CUresult, const char** name) {
    return *name = "CUDA_ERROR_X", CUDA_SUCCESS;
  };
  return driver;
}

class KeeperTest : public ::testing::Test {
 protected:
  KeeperTest() : driver_(FakeDriver()), keeper_(driver_, 0) {
    live.clear();
    EXPECT_TRUE(keeper_.Open().ok());
  }
  CUresult Create(uint32_t worker, uint64_t session, uint64_t bytes, uint64_t* id,
                  uint32_t device = 0) {
    ipc::UniqueFd fd;
    const ipc::control::ExtentReply reply = keeper_.Create(
        worker, {0, {OwnerKind::kSession, session}, bytes, next_address_ += bytes, 0, device, 0},
        &fd);
    EXPECT_EQ(fd.valid(), reply.result == CUDA_SUCCESS);
    *id = reply.id;
    return static_cast<CUresult>(reply.result);
  }
  CUresult Import(uint32_t worker, uint64_t id) {
    ipc::UniqueFd fd;
    const ipc::control::ExtentReply reply = keeper_.Import(worker, id, &fd);
    EXPECT_EQ(fd.valid(), reply.result == CUDA_SUCCESS);
    return static_cast<CUresult>(reply.result);
  }
  uint64_t Used(uint32_t device = 0) const {
    return kDeviceBytes - keeper_.Memory(device).free_bytes;
  }

  const common::Driver driver_;
  Keeper keeper_;
  uint64_t next_address_ = 0;
};

}  // namespace keeper
