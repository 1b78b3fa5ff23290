// The keeper's books, over a driver of functions.
#include "daemon/keeper/keeper.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <set>

#include "tests/ipc/testing.h"

namespace keeper {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kDeviceBytes = 64 * kMiB;
std::set<CUmemGenericAllocationHandle> live;  // what the driver below has given
CUmemGenericAllocationHandle last_handle = 0;

common::Driver FakeDriver() {
  common::Driver driver;
  driver.cuInit = [](unsigned) { return CUDA_SUCCESS; };
  driver.cuDeviceGetCount = [](int* count) { return *count = 2, CUDA_SUCCESS; };
  driver.cuDeviceGet = [](CUdevice* device, int ordinal) {
    return *device = ordinal, CUDA_SUCCESS;
  };
  driver.cuDeviceGetName = [](char* name, int, CUdevice) { return name[0] = '\0', CUDA_SUCCESS; };
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
    const CUresult result = keeper_.Create(worker, {session, bytes, device, 0}, id, &fd);
    EXPECT_EQ(fd.valid(), result == CUDA_SUCCESS);
    return result;
  }

  const common::Driver driver_;
  Keeper keeper_;
};

TEST_F(KeeperTest, CountsWhatIsTakenAndGivenBack) {
  uint64_t one = 0, two = 0;
  ASSERT_EQ(Create(1, 10, 2 * kMiB, &one), CUDA_SUCCESS);
  ASSERT_EQ(Create(1, 10, 4 * kMiB, &two), CUDA_SUCCESS);
  EXPECT_NE(one, two);
  EXPECT_EQ(keeper_.Memory(0).free_bytes, kDeviceBytes - 6 * kMiB);
  EXPECT_EQ(keeper_.Memory(1).free_bytes, kDeviceBytes);
  keeper_.Free(1, one);
  EXPECT_EQ(keeper_.Memory(0).free_bytes, kDeviceBytes - 4 * kMiB);
  keeper_.Free(1, two);
  EXPECT_TRUE(keeper_.Empty());
  EXPECT_TRUE(live.empty());
}

TEST_F(KeeperTest, AFullDeviceIsOutOfMemoryAndNoOther) {
  uint64_t id = 0;
  EXPECT_EQ(Create(1, 1, kDeviceBytes + 2 * kMiB, &id), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(Create(1, 1, kDeviceBytes, &id), CUDA_SUCCESS);
  EXPECT_EQ(Create(1, 1, 2 * kMiB, &id), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(Create(1, 1, 2 * kMiB, &id, 1), CUDA_SUCCESS);
}

TEST_F(KeeperTest, OddRequestsAreRefused) {
  uint64_t id = 0;
  EXPECT_EQ(Create(1, 1, 0, &id), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Create(1, 1, kMiB, &id), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Create(1, 1, 2 * kMiB, &id, 2), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(Create(1, 1, ~uint64_t{0} - 2 * kMiB + 1, &id), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(KeeperTest, AWorkerFreesOnlyItsOwn) {
  uint64_t id = 0;
  ASSERT_EQ(Create(1, 1, 2 * kMiB, &id), CUDA_SUCCESS);
  keeper_.Free(2, id);
  EXPECT_FALSE(keeper_.Empty());
  EXPECT_EQ(keeper_.ReleaseWorker(2), 0u);
  EXPECT_EQ(keeper_.ReleaseWorker(1), 2 * kMiB);
  EXPECT_TRUE(keeper_.Empty());
}

TEST_F(KeeperTest, AdoptedExtentsKeepTheirNamesAndCount) {
  const ipc::UniqueFd fd(memfd_create("handed-over", MFD_CLOEXEC));
  EXPECT_EQ(keeper_.Adopt(3, {42, 9, 8 * kMiB, 1, 0}, fd), CUDA_SUCCESS);
  EXPECT_EQ(keeper_.Adopt(3, {42, 9, 8 * kMiB, 1, 0}, fd), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(keeper_.Adopt(3, {43, 9, 8 * kMiB, 1, 0}, ipc::UniqueFd()), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(keeper_.Memory(1).free_bytes, kDeviceBytes - 8 * kMiB);
  const std::vector<ipc::control::UsageList> lists = keeper_.Usages();
  ASSERT_EQ(lists.size(), 1u);
  ASSERT_EQ(lists[0].count, 1u);
  EXPECT_EQ(lists[0].usages[0].session_id, 9u);
  EXPECT_EQ(lists[0].usages[0].worker, 3u);
  EXPECT_EQ(lists[0].usages[0].bytes, 8 * kMiB);
  keeper_.Free(3, 42);
  EXPECT_TRUE(keeper_.Empty());
}

TEST_F(KeeperTest, TheReserveIsNotGivenOut) {
  Keeper keeper(driver_, static_cast<int64_t>(kDeviceBytes - 4 * kMiB));
  ASSERT_TRUE(keeper.Open().ok());
  EXPECT_EQ(keeper.Memory(0).total_bytes, 4 * kMiB);
}

TEST_F(KeeperTest, LongListsTakeSeveralMessages) {
  uint64_t id = 0;
  common::Driver large = FakeDriver();
  large.cuDeviceTotalMem_v2 = [](size_t* bytes, CUdevice) {
    return *bytes = 4096 * kMiB, CUDA_SUCCESS;
  };
  Keeper keeper(large, 0);
  ASSERT_TRUE(keeper.Open().ok());
  for (uint64_t session = 0; session < 300; ++session) {
    ipc::UniqueFd fd;
    ASSERT_EQ(keeper.Create(1, {session, 2 * kMiB, 0, 0}, &id, &fd), CUDA_SUCCESS);
  }
  const std::vector<ipc::control::UsageList> lists = keeper.Usages();
  EXPECT_EQ(lists.size(), 3u);
  EXPECT_EQ(lists[0].count + lists[1].count + lists[2].count, 300u);
}

// Random requests: what is counted is what lives, and never more than there is.
TEST_F(KeeperTest, RandomRequestsKeepTheBooks) {
  std::mt19937_64 random = ipc::Seeded();
  std::map<uint64_t, std::pair<uint32_t, uint64_t>> held;  // id -> worker, bytes
  for (int step = 0; step < 5000; ++step) {
    const uint32_t worker = 1 + random() % 3;
    uint64_t id = 0, sum = 0;
    if (random() % 2 == 0) {
      const uint64_t bytes = 2 * kMiB << (random() % 4);
      if (Create(worker, random() % 5, bytes, &id) == CUDA_SUCCESS) held[id] = {worker, bytes};
    } else if (random() % 50 == 0) {
      keeper_.ReleaseWorker(worker);
      std::erase_if(held, [worker](const auto& entry) { return entry.second.first == worker; });
    } else if (!held.empty()) {
      std::map<uint64_t, std::pair<uint32_t, uint64_t>>::iterator entry = held.begin();
      std::advance(entry, random() % held.size());
      keeper_.Free(worker, entry->first);
      if (entry->second.first == worker) held.erase(entry);
    }
    for (const std::pair<const uint64_t, std::pair<uint32_t, uint64_t>>& entry : held)
      sum += entry.second.second;
    ASSERT_EQ(keeper_.Memory(0).free_bytes, kDeviceBytes - sum);
    ASSERT_EQ(live.size(), held.size());
  }
}

}  // namespace
}  // namespace keeper
