// The keeper's books.
#include "daemon/keeper/keeper.h"

#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <set>

#include "tests/daemon/keeper_fixture.h"
#include "tests/harness/seed.h"
#include "tests/ipc/testing.h"

namespace keeper {
namespace {

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

TEST_F(KeeperTest, AWorkerFreesOnlyWhatItHas) {
  uint64_t id = 0;
  ASSERT_EQ(Create(1, 1, 2 * kMiB, &id), CUDA_SUCCESS);
  keeper_.Free(2, id);
  EXPECT_FALSE(keeper_.Empty());
  keeper_.Free(1, id);
  EXPECT_TRUE(keeper_.Empty());
}

TEST_F(KeeperTest, ExtentsOutliveTheirWorker) {
  uint64_t one = 0, two = 0;
  ASSERT_EQ(Create(1, 7, 2 * kMiB, &one), CUDA_SUCCESS);
  ASSERT_EQ(Create(1, 7, 4 * kMiB, &two), CUDA_SUCCESS);
  EXPECT_EQ(keeper_.ReleaseWorker(1), 0u);
  EXPECT_EQ(Used(), 6 * kMiB);
  const std::vector<ipc::control::ExtentList> lists = keeper_.List({OwnerKind::kSession, 7});
  ASSERT_EQ(lists.size(), 1u);
  ASSERT_EQ(lists[0].count, 2u);
  EXPECT_EQ(lists[0].extents[0].id, one);
  EXPECT_EQ(lists[0].extents[1].bytes, 4 * kMiB);
  EXPECT_EQ(keeper_.Usages()[0].usages[0].worker, 0u) << "nobody has it";
  EXPECT_EQ(Import(2, one), CUDA_SUCCESS);
  EXPECT_EQ(keeper_.ReleaseOwner({OwnerKind::kSession, 7}), 6 * kMiB);
  EXPECT_EQ(Used(), 2 * kMiB) << "the new worker has one still";
  EXPECT_EQ(Import(3, one), CUDA_ERROR_INVALID_VALUE) << "given up";
  EXPECT_TRUE(keeper_.List({OwnerKind::kSession, 7}).empty());
  EXPECT_EQ(keeper_.ReleaseWorker(2), 2 * kMiB);
  EXPECT_TRUE(keeper_.Empty());
  EXPECT_TRUE(live.empty());
}

TEST_F(KeeperTest, SeveralWorkersMayHaveALanesExtents) {
  const Owner lane{OwnerKind::kLane, 3};
  ipc::UniqueFd fd;
  const uint64_t id = keeper_.Create(1, {0, lane, 2 * kMiB, 0, 0, 0, 0}, &fd).id;
  EXPECT_EQ(Import(2, id), CUDA_SUCCESS);
  const ipc::control::UsageList usages = keeper_.Usages().at(0);
  ASSERT_EQ(usages.count, 2u);
  EXPECT_EQ(usages.usages[0].bytes + usages.usages[1].bytes, 2 * kMiB) << "counted once";
  keeper_.Drop(1, id);
  EXPECT_EQ(keeper_.List(lane).size(), 1u) << "the lane has it still";
  keeper_.ChangeOwner(2, {id, {OwnerKind::kSession, 9}, 64 * kMiB, 64 * kMiB});
  EXPECT_TRUE(keeper_.List(lane).empty());
  ASSERT_EQ(keeper_.List({OwnerKind::kSession, 9}).size(), 1u);
  EXPECT_EQ(keeper_.List({OwnerKind::kSession, 9})[0].extents[0].address, 64 * kMiB);
  keeper_.Free(2, id);
  EXPECT_TRUE(keeper_.Empty());
}

TEST_F(KeeperTest, AdoptedExtentsKeepTheirNamesAndCount) {
  const ipc::UniqueFd fd(memfd_create("handed-over", MFD_CLOEXEC));
  const ExtentRecord handed{42, {OwnerKind::kSession, 9}, 8 * kMiB, 0, 0, 1, 0};
  EXPECT_EQ(keeper_.Adopt(3, handed, fd), CUDA_SUCCESS);
  EXPECT_EQ(keeper_.Adopt(4, handed, fd), CUDA_SUCCESS) << "two workers had it";
  ExtentRecord other = handed;
  other.bytes = 2 * kMiB;
  EXPECT_EQ(keeper_.Adopt(5, other, fd), CUDA_ERROR_INVALID_VALUE);
  other.id = 43;
  EXPECT_EQ(keeper_.Adopt(3, other, ipc::UniqueFd()), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Used(1), 8 * kMiB);
  const std::vector<ipc::control::UsageList> lists = keeper_.Usages();
  ASSERT_EQ(lists.size(), 1u);
  ASSERT_EQ(lists[0].count, 2u);
  EXPECT_EQ(lists[0].usages[0].owner.id, 9u);
  EXPECT_EQ(lists[0].usages[0].worker, 3u);
  EXPECT_EQ(lists[0].usages[0].bytes, 8 * kMiB);
  keeper_.Free(3, 42);
  EXPECT_FALSE(keeper_.Empty());
  keeper_.Free(4, 42);
  EXPECT_TRUE(keeper_.Empty());
}

// Two workers share a lane, and one has not heard yet that a session took the extent out of it.
TEST_F(KeeperTest, WhatASessionTookOutOfALaneIsAdoptedAsItsOwn) {
  const ipc::UniqueFd fd(memfd_create("handed-over", MFD_CLOEXEC));
  const ExtentRecord before{42, {OwnerKind::kLane, 3}, 8 * kMiB, 16 * kMiB, 0, 0, 0};
  const ExtentRecord after{42, {OwnerKind::kSession, 9}, 8 * kMiB, 64 * kMiB, 64 * kMiB, 0, 0};
  for (const bool old_word_first : {true, false}) {
    Keeper keeper(driver_, 0);
    ASSERT_TRUE(keeper.Open().ok());
    EXPECT_EQ(keeper.Adopt(1, old_word_first ? before : after, fd), CUDA_SUCCESS);
    EXPECT_EQ(keeper.Adopt(2, old_word_first ? after : before, fd), CUDA_SUCCESS);
    EXPECT_TRUE(keeper.List(before.owner).empty()) << old_word_first;
    const std::vector<ipc::control::ExtentList> lists = keeper.List(after.owner);
    ASSERT_EQ(lists.size(), 1u) << old_word_first;
    EXPECT_EQ(lists[0].extents[0].address, 64 * kMiB);
    EXPECT_EQ(lists[0].extents[0].range, 64 * kMiB);
  }
}

TEST_F(KeeperTest, AWorkerIsLateWithALaneThatAnotherHasEntered) {
  const ipc::UniqueFd fd(memfd_create("handed-over", MFD_CLOEXEC));
  const ExtentRecord first{42, {OwnerKind::kLane, 3}, 2 * kMiB, 0, 0, 0, 0};
  const ExtentRecord second{43, {OwnerKind::kLane, 3}, 2 * kMiB, 2 * kMiB, 0, 0, 0};
  EXPECT_EQ(keeper_.Adopt(1, first, fd), CUDA_SUCCESS);
  keeper_.Claim(2, 3);
  EXPECT_EQ(keeper_.Adopt(1, second, fd), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(keeper_.Adopt(1, first, fd), CUDA_SUCCESS) << "the keeper knows it";
  EXPECT_EQ(keeper_.Adopt(1, {44, {OwnerKind::kLane, 4}, 2 * kMiB, 0, 0, 0, 0}, fd), CUDA_SUCCESS);
  EXPECT_EQ(keeper_.Adopt(1, {45, {OwnerKind::kSession, 3}, 2 * kMiB, 0, 0, 0, 0}, fd),
            CUDA_SUCCESS);
  EXPECT_EQ(keeper_.Adopt(2, second, fd), CUDA_SUCCESS);
  keeper_.ReleaseOwner({OwnerKind::kLane, 3});
  EXPECT_EQ(keeper_.Adopt(1, {46, {OwnerKind::kLane, 3}, 2 * kMiB, 0, 0, 0, 0}, fd), CUDA_SUCCESS)
      << "the lane has ended, and with it the claim";
}

TEST_F(KeeperTest, WhatIsCountedOutsideIsAtMostTheDevice) {
  const Owner owner{OwnerKind::kSession, 9};
  uint64_t id = 0;
  ASSERT_EQ(Create(1, 10, 4 * kMiB, &id), CUDA_SUCCESS);
  keeper_.CountOutside({owner, ~uint64_t{0}, 0});
  EXPECT_EQ(keeper_.Memory(0).free_bytes, 0u);
  keeper_.Free(1, id);
  EXPECT_EQ(keeper_.Memory(0).free_bytes, 0u);
  EXPECT_EQ(keeper_.ReleaseOwner(owner), kDeviceBytes);
  EXPECT_EQ(Used(), 0u);
}

TEST_F(KeeperTest, MemoryOfAnotherTenantMustBeZeroed) {
  common::Driver cuda = FakeDriver();
  cuda.kind = ipc::control::DeviceKind::kCuda;
  Keeper keeper(cuda, 0);
  ASSERT_TRUE(keeper.Open().ok());
  const auto create = [&keeper](uint32_t uid) {
    ipc::UniqueFd fd;
    return keeper.Create(1, {0, {OwnerKind::kSession, 1}, 2 * kMiB, 0, 0, 0, uid}, &fd);
  };
  const ipc::control::ExtentReply first = create(1000);
  EXPECT_EQ(first.clear, 0u);
  keeper.Free(1, first.id);
  EXPECT_EQ(create(1000).clear, 0u) << "it was its own";
  EXPECT_EQ(create(1001).clear, 1u);
  Keeper always(driver_, 0, Scrub::kAlways);
  ASSERT_TRUE(always.Open().ok());
  ipc::UniqueFd fd;
  EXPECT_EQ(always.Create(1, {0, {}, 2 * kMiB, 0, 0, 0, 1000}, &fd).clear, 1u);
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
    id = keeper.Create(1, {0, {OwnerKind::kSession, session}, 2 * kMiB}, &fd).id;
    ASSERT_NE(id, 0u);
  }
  const std::vector<ipc::control::UsageList> lists = keeper.Usages();
  EXPECT_EQ(lists.size(), 3u);
  EXPECT_EQ(lists[0].count + lists[1].count + lists[2].count, 300u);
}

// What must live: an extent lives as long as its owner or a worker has it.
class Books {
 public:
  struct Held {
    uint64_t bytes;
    Owner owner;
    std::set<uint32_t> workers;
    bool given_up;
  };
  explicit Books(const common::Driver& driver) : driver_(driver) { NewKeeper(); }

  void Step() {
    const uint32_t worker = 1 + random_() % 3;
    const unsigned choice = random_() % 100;
    if (choice < 45 || held_.empty()) {
      Create(worker);
    } else if (choice < 60) {
      Import(worker);
    } else if (choice < 92) {
      Change(worker, choice);
    } else if (choice < 96) {
      EndOwner(AnyOwner());
    } else if (choice < 99) {
      keeper_->ReleaseWorker(worker);
      std::vector<uint64_t> ids;
      for (const auto& [id, extent] : held_) ids.push_back(id);
      for (const uint64_t id : ids) Leave(id, worker, false);
    } else {
      Replace();
    }
  }

  void Check() const {
    uint64_t sum = 0, told = 0;
    for (const auto& [id, extent] : held_) sum += extent.bytes;
    for (const ipc::control::UsageList& list : keeper_->Usages()) {
      for (uint32_t i = 0; i < list.count; ++i) told += list.usages[i].bytes;
    }
    ASSERT_EQ(keeper_->Memory(0).free_bytes, kDeviceBytes - sum);
    ASSERT_EQ(live.size(), held_.size());
    ASSERT_EQ(told, sum);
  }

 private:
  Owner AnyOwner() {
    return {random_() % 2 == 0 ? OwnerKind::kSession : OwnerKind::kLane, random_() % 5};
  }
  uint64_t AnyExtent() {
    std::map<uint64_t, Held>::iterator any = held_.begin();
    std::advance(any, random_() % held_.size());
    return any->first;
  }
  void NewKeeper() {
    live.clear();
    keeper_ = std::make_unique<Keeper>(driver_, 0);
    ASSERT_TRUE(keeper_->Open().ok());
  }
  void Create(uint32_t worker) {
    ipc::UniqueFd fd;
    const ExtentRecord wanted{0, AnyOwner(), 2 * kMiB << (random_() % 4)};
    const ipc::control::ExtentReply reply = keeper_->Create(worker, wanted, &fd);
    if (reply.result != CUDA_SUCCESS) return;
    held_[reply.id] = {wanted.bytes, wanted.owner, {worker}, false};
  }
  void Import(uint32_t worker) {
    ipc::UniqueFd fd;
    const uint64_t id = AnyExtent();
    const uint32_t result = keeper_->Import(worker, id, &fd).result;
    ASSERT_EQ(result == CUDA_SUCCESS, !held_.at(id).given_up);
    if (result == CUDA_SUCCESS) held_.at(id).workers.insert(worker);
  }
  void Change(uint32_t worker, unsigned choice) {
    const uint64_t id = AnyExtent();
    if (choice < 75) {
      keeper_->Free(worker, id);
      Leave(id, worker, true);
    } else if (choice < 85) {
      keeper_->Drop(worker, id);
      Leave(id, worker, false);
    } else {
      const ipc::control::ChangeOwner change{id, AnyOwner(), random_(), random_()};
      keeper_->ChangeOwner(worker, change);
      if (held_.at(id).workers.count(worker) != 0) held_.at(id).owner = change.owner;
    }
  }
  void Leave(uint64_t id, uint32_t worker, bool give_up) {
    Held& extent = held_.at(id);
    if (extent.workers.erase(worker) == 0) return;
    extent.given_up |= give_up;
    if (extent.given_up && extent.workers.empty()) held_.erase(id);
  }
  void EndOwner(const Owner& owner) {
    keeper_->ReleaseOwner(owner);
    for (auto& [id, extent] : held_) extent.given_up |= extent.owner == owner;
    std::erase_if(held_, [](const auto& entry) {
      return entry.second.given_up && entry.second.workers.empty();
    });
  }
  // A new keeper hears of what workers have; nobody else knows of the rest.
  void Replace() {
    NewKeeper();
    std::erase_if(held_, [](const auto& entry) { return entry.second.workers.empty(); });
    const ipc::UniqueFd handed(memfd_create("handed-over", MFD_CLOEXEC));
    for (auto& [id, extent] : held_) {
      extent.given_up = false;
      for (const uint32_t holder : extent.workers) {
        ASSERT_EQ(keeper_->Adopt(holder, {id, extent.owner, extent.bytes}, handed), CUDA_SUCCESS);
      }
    }
  }

  const common::Driver& driver_;
  std::mt19937_64 random_{harness::Seed()};
  std::unique_ptr<Keeper> keeper_;
  std::map<uint64_t, Held> held_;
};

// Random requests, the keeper replaced now and then: what is counted is what lives.
TEST_F(KeeperTest, RandomRequestsKeepTheBooks) {
  Books books(driver_);
  for (int step = 0; step < 20'000 && !HasFailure(); ++step) {
    books.Step();
    books.Check();
  }
}

}  // namespace
}  // namespace keeper
