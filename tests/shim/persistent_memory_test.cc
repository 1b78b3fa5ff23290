// Persistent memory over a worker that maps up to a limit.
#include "shim/persistent_memory.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/mutex.h"

namespace shim {
namespace {

using arena::Persistent;
using arena::Range;

constexpr uint64_t kBase = uint64_t{1} << 40;
constexpr uint64_t kMiB = 1 << 20;
constexpr uint32_t kPool = 7;

class LimitedWorker : public PersistentMemory::Worker {
 public:
  // Every question is to come without this mutex.
  void Watch(base::Mutex* mutex) { mutex_ = mutex; }

  CUresult Map(const Context&, Range range) override {
    ExpectUnlocked();
    ++asked;
    EXPECT_FALSE(mapped.contains(range.base));
    if (Mapped() + range.bytes > limit) return CUDA_ERROR_OUT_OF_MEMORY;
    mapped[range.base] = range.bytes;
    return CUDA_SUCCESS;
  }
  void Unmap(int, Range range) override {
    ExpectUnlocked();
    EXPECT_EQ(mapped.erase(range.base), 1u);
  }
  bool FreeBytes(const Context&, size_t* bytes) override {
    ExpectUnlocked();
    *bytes = limit - Mapped();
    return answers;
  }
  uint64_t Mapped() const {
    uint64_t sum = 0;
    for (const std::pair<const uint64_t, uint64_t>& range : mapped) sum += range.second;
    return sum;
  }

  uint64_t limit = 64 * kMiB;
  bool answers = true;
  int asked = 0;
  std::map<uint64_t, uint64_t> mapped;

 private:
  void ExpectUnlocked() {
    const bool locked = mutex_->TryLock();
    if (locked) mutex_->Unlock();
    EXPECT_TRUE(locked);
  }

  base::Mutex* mutex_ = nullptr;
};

class PersistentMemoryTest : public ::testing::Test {
 protected:
  PersistentMemoryTest() { worker_.Watch(&memory_.mutex()); }

  CUresult Take(uint64_t bytes, Persistent::Block* block, uint32_t owner = Persistent::kProgram) {
    const base::MutexLock lock(&memory_.mutex());
    return memory_.Take(context_, {.bytes = bytes, .owner = owner}, block);
  }
  void Give(const Persistent::Block& block) {
    std::vector<Range> unmap;
    {
      const base::MutexLock lock(&memory_.mutex());
      memory_.GiveLocked(0, block, {}, &unmap);
    }
    memory_.Unmap(0, unmap);
  }

  LimitedWorker worker_;
  std::atomic<uint64_t> empty_[ipc::limits::kLegacySlots] = {};
  PersistentMemory memory_{kBase, 1024 * kMiB, &worker_, empty_};
  Context context_;
};

TEST_F(PersistentMemoryTest, AnEmptyRangeIsCachedAndUsedAgain) {
  Persistent::Block block;
  ASSERT_EQ(Take(8 * kMiB, &block), CUDA_SUCCESS);
  EXPECT_EQ(worker_.asked, 1);
  EXPECT_EQ(empty_[0].load(), 0u);
  Give(block);
  EXPECT_EQ(memory_.cached_bytes(0), 8 * kMiB);
  EXPECT_EQ(empty_[0].load(), 8 * kMiB);
  Persistent::Block again;
  ASSERT_EQ(Take(8 * kMiB, &again), CUDA_SUCCESS);
  EXPECT_EQ(worker_.asked, 1);
  EXPECT_EQ(again.address, block.address);
}

TEST_F(PersistentMemoryTest, CachedMemoryMakesRoomForALargerBlock) {
  Persistent::Block block;
  ASSERT_EQ(Take(30 * kMiB, &block), CUDA_SUCCESS);
  Give(block);
  ASSERT_EQ(worker_.Mapped(), 30 * kMiB);
  ASSERT_EQ(Take(60 * kMiB, &block), CUDA_SUCCESS);
  EXPECT_EQ(worker_.Mapped(), 60 * kMiB);
}

TEST_F(PersistentMemoryTest, WhatFitsBesideCachedMemoryLeavesItThere) {
  Persistent::Block block, other;
  ASSERT_EQ(Take(16 * kMiB, &block), CUDA_SUCCESS);
  Give(block);
  ASSERT_EQ(Take(32 * kMiB, &other), CUDA_SUCCESS);
  EXPECT_EQ(worker_.Mapped(), 48 * kMiB);
}

TEST_F(PersistentMemoryTest, ARefusalGivesTheAddressesBack) {
  Persistent::Block block, other;
  EXPECT_EQ(Take(128 * kMiB, &block), CUDA_ERROR_OUT_OF_MEMORY);
  worker_.limit = 1024 * kMiB;
  ASSERT_EQ(Take(1024 * kMiB, &other), CUDA_SUCCESS);  // all addresses that there are
}

TEST_F(PersistentMemoryTest, APoolHoldsUpToItsThreshold) {
  Persistent::Block block;
  memory_.SetThreshold(0, kPool, 8 * kMiB);
  EXPECT_EQ(memory_.ThresholdOf(0, kPool), 8 * kMiB);
  ASSERT_EQ(Take(8 * kMiB, &block, kPool), CUDA_SUCCESS);
  EXPECT_EQ(memory_.UsageOf(0, kPool).used, 8 * kMiB);
  Give(block);
  memory_.OnSynchronized();
  EXPECT_EQ(memory_.UsageOf(0, kPool).reserved, 8 * kMiB);
  memory_.Release(0, kPool, 0);
  EXPECT_EQ(memory_.UsageOf(0, kPool).reserved, 0u);
}

TEST_F(PersistentMemoryTest, WhatALaneHasOfAPoolIsChargedToIt) {
  {
    const base::MutexLock lock(&memory_.mutex());
    memory_.ChargeLocked(0, kPool, 4096);
  }
  EXPECT_EQ(memory_.UsageOf(0, kPool).used, 4096u);
  {
    const base::MutexLock lock(&memory_.mutex());
    memory_.ChargeLocked(0, kPool, -4096);
  }
  EXPECT_EQ(memory_.UsageOf(0, kPool).used, 0u);
}

TEST_F(PersistentMemoryTest, TrimUnmapsAllThatIsNotLive) {
  Persistent::Block live, dead;
  ASSERT_EQ(Take(4 * kMiB, &live), CUDA_SUCCESS);
  ASSERT_EQ(Take(8 * kMiB, &dead), CUDA_SUCCESS);
  Give(dead);
  memory_.Trim(0);
  EXPECT_EQ(worker_.Mapped(), 4 * kMiB);
  EXPECT_EQ(empty_[0].load(), 0u);
}

}  // namespace
}  // namespace shim
