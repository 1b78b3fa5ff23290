// Ranges that several sessions have mapped: who may, and when the memory goes. Arenas of two slots
// over one recorded driver.
#include "daemon/worker/shared_ranges.h"

#include <gtest/gtest.h>

#include <memory>

#include "daemon/worker/arena.h"
#include "tests/daemon/worker/recording_driver.h"

namespace worker {
namespace {

using ipc::limits::MiB;

constexpr CUdeviceptr kOwner = ipc::limits::kSlotBase;
constexpr CUdeviceptr kGuest = kOwner + ipc::limits::kSlotBytes;
constexpr CUdeviceptr kThird = kGuest + ipc::limits::kSlotBytes;
constexpr uint64_t kBytes = 6 * MiB;  // two extents

class SharedRangesTest : public testing::Test {
 protected:
  SharedRangesTest() : recording_(FreshRecording()), environment_(RecordingEnvironment()) {
    recording_.capacity_bytes = 64 * MiB;
    environment_.lanes = &lanes_;
    owner_ = MakeArena(1, 1000, 0);
    guest_ = MakeArena(2, 1000, 1);
    EXPECT_EQ(owner_->Map(0, kOwner, kBytes), CUDA_SUCCESS);
  }
  ~SharedRangesTest() override {
    owner_.reset();
    guest_.reset();
    EXPECT_EQ(recording_.used_bytes, 0u) << "nothing is left";
    EXPECT_TRUE(recording_.mapped.empty());
  }
  std::unique_ptr<Arena> MakeArena(uint64_t session, uint32_t uid, uint32_t slot) {
    std::unique_ptr<Arena> arena = std::make_unique<Arena>(
        environment_, Tenant{session, uid, std::make_shared<JobMemory>()}, slot);
    std::string error;
    EXPECT_TRUE(arena->Reserve(&error)) << error;
    return arena;
  }
  ipc::ShareName Share() {
    ipc::ShareName name;
    CUdeviceptr base = 0;
    EXPECT_EQ(owner_->Share(kOwner + 3 * MiB, &name, &base), CUDA_SUCCESS);
    EXPECT_EQ(base, kOwner);
    EXPECT_EQ(name.range_bytes, kBytes);
    return name;
  }
  uint64_t OwnerOf(CUdeviceptr address) {
    return recording_.extents.at(recording_.mappings.at(address).handle).owner.id;
  }

  Recording& recording_;
  Environment environment_;
  LaneTable lanes_{&environment_};
  std::unique_ptr<Arena> owner_, guest_;
};

TEST_F(SharedRangesTest, BothSeeTheSameBytes) {
  const ipc::ShareName name = Share();
  EXPECT_EQ(Share(), name) << "one range has one name";
  EXPECT_TRUE(owner_->shares());
  EXPECT_FALSE(guest_->shares());
  ASSERT_EQ(guest_->MapShared(0, name, kGuest + 2 * MiB), CUDA_SUCCESS);
  recording_.At(kOwner + 5 * MiB) = 42;
  EXPECT_EQ(recording_.At(kGuest + 7 * MiB), 42);
  EXPECT_EQ(recording_.used_bytes, kBytes) << "counted once";
  EXPECT_EQ(guest_->bytes(), 0u);
  EXPECT_EQ(guest_->Map(0, kGuest + 4 * MiB, 2 * MiB), CUDA_ERROR_INVALID_VALUE) << "taken";
  uint64_t counted = 1;
  EXPECT_EQ(guest_->Free(kGuest + 2 * MiB, &counted), CUDA_SUCCESS);
  EXPECT_EQ(counted, 0u);
  EXPECT_FALSE(guest_->shares());
  EXPECT_EQ(recording_.used_bytes, kBytes);
}

TEST_F(SharedRangesTest, OnlyTheSameUserMayOpenTheVeryName) {
  const ipc::ShareName name = Share();
  const auto open = [this](ipc::ShareName wrong) { return guest_->MapShared(0, wrong, kGuest); };
  ipc::ShareName wrong = name;
  ++wrong.token[0];
  EXPECT_EQ(open(wrong), CUDA_ERROR_INVALID_HANDLE);
  wrong = name;
  ++wrong.token[1];
  EXPECT_EQ(open(wrong), CUDA_ERROR_INVALID_HANDLE);
  wrong = name;
  wrong.range_bytes += 2 * MiB;
  EXPECT_EQ(open(wrong), CUDA_ERROR_INVALID_HANDLE);
  wrong = name;
  ++wrong.worker;
  EXPECT_EQ(open(wrong), CUDA_ERROR_NOT_SUPPORTED);
  const std::unique_ptr<Arena> stranger = MakeArena(3, 1001, 2);
  EXPECT_EQ(stranger->MapShared(0, name, kThird), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(owner_->MapShared(0, name, kOwner + 8 * MiB), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(open(name), CUDA_SUCCESS);
  EXPECT_EQ(guest_->MapShared(0, name, kGuest + 8 * MiB), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(SharedRangesTest, OnlyRangesOfTheSessionCanBeShared) {
  ipc::ShareName name;
  CUdeviceptr base = 0;
  for (const CUdeviceptr address : {kOwner - 1, kOwner + kBytes, kGuest, CUdeviceptr{0}})
    EXPECT_EQ(owner_->Share(address, &name, &base), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(guest_->MapShared(0, Share(), kGuest), CUDA_SUCCESS);
  EXPECT_EQ(guest_->Share(kGuest, &name, &base), CUDA_ERROR_INVALID_VALUE) << "another's";
  const ipc::ShareName shared = Share();
  for (const CUdeviceptr place : {kOwner, kGuest + MiB, kGuest + 4 * MiB})
    EXPECT_EQ(guest_->MapShared(0, shared, place), CUDA_ERROR_INVALID_VALUE) << place;
}

TEST_F(SharedRangesTest, TheMemoryOutlivesTheSessionThatMadeIt) {
  ASSERT_EQ(guest_->MapShared(0, Share(), kGuest), CUDA_SUCCESS);
  recording_.At(kOwner + MiB) = 7;
  owner_->Clear();
  EXPECT_EQ(recording_.At(kGuest + MiB), 7);
  EXPECT_EQ(recording_.used_bytes, kBytes);
  EXPECT_EQ(OwnerOf(kGuest), 2u) << "the keeper frees it with the session that has it";
  EXPECT_EQ(OwnerOf(kGuest + 4 * MiB), 2u);
  guest_->Clear();
  EXPECT_EQ(recording_.used_bytes, 0u);
}

TEST_F(SharedRangesTest, AFreedRangeIsNobodyElsesMemory) {
  const ipc::ShareName name = Share();
  ASSERT_EQ(guest_->MapShared(0, name, kGuest), CUDA_SUCCESS);
  EXPECT_EQ(owner_->Free(kOwner), CUDA_SUCCESS);
  EXPECT_EQ(owner_->bytes(), 0u);
  ASSERT_EQ(owner_->Map(0, kOwner, kBytes), CUDA_SUCCESS);
  recording_.At(kOwner) = 1;
  recording_.At(kGuest) = 2;
  EXPECT_EQ(recording_.At(kOwner), 1);
  EXPECT_EQ(recording_.used_bytes, 2 * kBytes);
  EXPECT_NE(Share(), name);
  EXPECT_EQ(guest_->Free(kGuest), CUDA_SUCCESS);
  EXPECT_EQ(recording_.used_bytes, kBytes);
  EXPECT_EQ(guest_->MapShared(0, name, kGuest), CUDA_ERROR_INVALID_HANDLE) << "gone";
}

TEST_F(SharedRangesTest, ASharedRangeStaysWhereItIs) {
  (void)Share();
  EXPECT_EQ(owner_->Move(kOwner, kOwner + 16 * MiB), CUDA_ERROR_INVALID_VALUE);
  owner_->Detach();
  EXPECT_EQ(recording_.used_bytes, 0u) << "its session hid that it shares memory";
}

// Each mapping is one of the worker's process, of which the system allows so many.
TEST_F(SharedRangesTest, GuestsMapOnlySoManyExtents) {
  SharedRanges ranges(3);
  const auto share = [&](CUdeviceptr base) {
    return ranges.Share({1, 1000}, 0, {{base, {1, 4 * MiB}}, {base + 4 * MiB, {2, 2 * MiB}}});
  };
  const std::shared_ptr<SharedRange> one = share(kOwner), other = share(kOwner + 8 * MiB);
  std::shared_ptr<SharedRange> joined;
  const auto join = [&](uint64_t session, const SharedRange& range) {
    return ranges.Join({session, 1000}, ranges.NameOf(range), 0, kGuest, &joined);
  };
  EXPECT_EQ(join(2, *one), CUDA_SUCCESS);
  EXPECT_EQ(join(2, *other), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(join(3, *one), CUDA_ERROR_OUT_OF_MEMORY);
  ranges.Leave(environment_, one, 2, {});
  EXPECT_EQ(join(2, *other), CUDA_SUCCESS);
}

TEST_F(SharedRangesTest, AMappingThatFailsLeavesNothing) {
  const ipc::ShareName name = Share();
  static CUresult (*const kMap)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
                                unsigned long long) = environment_.driver->cuMemMap;
  ipc::DriverTable failing = *environment_.driver;
  failing.cuMemMap = [](CUdeviceptr address, size_t bytes, size_t offset,
                        CUmemGenericAllocationHandle handle, unsigned long long flags) {
    return address > kGuest ? CUDA_ERROR_OUT_OF_MEMORY
                            : kMap(address, bytes, offset, handle, flags);
  };
  const ipc::DriverTable* const driver = environment_.driver;
  environment_.driver = &failing;
  EXPECT_EQ(guest_->MapShared(0, name, kGuest), CUDA_ERROR_OUT_OF_MEMORY);
  environment_.driver = driver;
  EXPECT_FALSE(guest_->shares());
  EXPECT_EQ(guest_->MapShared(0, name, kGuest), CUDA_SUCCESS);
}

}  // namespace
}  // namespace worker
