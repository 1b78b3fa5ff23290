// A worker's way to the keeper, over the real keeper's door, when one keeper follows another.
#include "daemon/worker/extents.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "daemon/keeper/server.h"
#include "ipc/runtime_dir.h"
#include "ipc/socket.h"
#include "tests/daemon/keeper_fixture.h"
#include "tests/ipc/testing.h"

namespace keeper {
namespace {

namespace wire = ipc::control;
using worker::Extent;
using worker::KeeperExtents;
using worker::LaneClaim;

constexpr uint64_t kLane = 5;
constexpr Owner kOwner{OwnerKind::kLane, kLane};

// One keeper process.
class RunningKeeper {
 public:
  RunningKeeper(const common::Driver& driver, const std::string& dir) : keeper_(driver, 0) {
    EXPECT_TRUE(keeper_.Open().ok());
    EXPECT_TRUE(server_.Listen(dir).ok());
    absl::StatusOr<std::pair<ipc::UniqueFd, ipc::UniqueFd>> pair = ipc::ConnectedPair();
    EXPECT_TRUE(pair.ok());
    server_.Greet(std::move(pair->first));
    daemon_ = std::move(pair->second);
    thread_ = std::thread([this] { server_.Run(); });
  }
  ~RunningKeeper() {
    EXPECT_TRUE(wire::Send<wire::ToKeeper>(daemon_.get(), wire::Stop{}).ok());
    thread_.join();
  }

 private:
  Keeper keeper_;
  Server server_{&keeper_, 60};
  ipc::UniqueFd daemon_;
  std::thread thread_;
};

// Two workers that have a lane of two extents, and a session of each that is a member.
class ExtentsTest : public ::testing::Test {
 protected:
  ExtentsTest() {
    Replace();
    for (const uint64_t offset : {uint64_t{0}, 2 * kMiB}) {
      Extent made, imported;
      const ExtentRecord wanted{0, kOwner, 2 * kMiB, offset, 0, 0, 0};
      EXPECT_EQ(one_.Create(wanted, &made), CUDA_SUCCESS);
      EXPECT_EQ(two_.Import(Listed(&one_).back(), &imported), CUDA_SUCCESS);
      lane_.push_back(made);
    }
    for (const std::shared_ptr<LaneClaim>& claim : {claim_of_one_, claim_of_two_}) {
      EXPECT_TRUE(claim->Take());
      EXPECT_TRUE(claim->Enter());
      claim->Exit();
    }
  }
  // The keeper dies, and another one comes.
  void Replace() {
    keeper_.reset();
    keeper_ = std::make_unique<RunningKeeper>(driver_, dir_.path());
  }
  static std::vector<ExtentRecord> Listed(KeeperExtents* extents) {
    std::vector<ExtentRecord> records;
    EXPECT_EQ(extents->List(kOwner, &records), CUDA_SUCCESS);
    return records;
  }

  // The keepers' driver is called from their threads, so the workers have one without state.
  static common::Driver WorkerDriver() {
    common::Driver driver = FakeDriver();
    driver.cuMemImportFromShareableHandle = [](CUmemGenericAllocationHandle* handle, void*,
                                               CUmemAllocationHandleType) {
      return *handle = 1, CUDA_SUCCESS;
    };
    driver.cuMemRelease = [](CUmemGenericAllocationHandle) { return CUDA_SUCCESS; };
    return driver;
  }

  ipc::TemporaryDir dir_;
  const common::Driver driver_ = FakeDriver();
  const common::Driver worker_driver_ = WorkerDriver();
  std::unique_ptr<RunningKeeper> keeper_;
  KeeperExtents one_{worker_driver_, dir_.path(), 1};
  KeeperExtents two_{worker_driver_, dir_.path(), 2};
  const std::shared_ptr<LaneClaim> claim_of_one_ = one_.ClaimOf(kLane);
  const std::shared_ptr<LaneClaim> claim_of_two_ = two_.ClaimOf(kLane);
  std::vector<Extent> lane_;
};

TEST_F(ExtentsTest, ALaneIsHandedOverByTheWorkerThatIsInside) {
  EXPECT_TRUE(claim_of_one_->Enter());
  Replace();
  two_.OnKeeperChanged();
  EXPECT_TRUE(Listed(&two_).empty()) << "what this worker has may not be the lane's any more";
  one_.OnKeeperChanged();
  ASSERT_EQ(Listed(&two_).size(), 2u);
  EXPECT_EQ(Listed(&two_)[1].id, lane_[1].id);
}

TEST_F(ExtentsTest, WithoutASessionInsideALaneEndsWithItsKeeper) {
  Replace();
  one_.OnKeeperChanged();
  two_.OnKeeperChanged();
  EXPECT_TRUE(Listed(&one_).empty());
  uint64_t free_bytes = 0, total_bytes = 0;
  EXPECT_EQ(one_.MemoryInfo(0, &free_bytes, &total_bytes), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes, total_bytes);
}

TEST_F(ExtentsTest, WhatAnotherWorkerHandedOverIsConfirmed) {
  EXPECT_TRUE(claim_of_one_->Enter());
  Replace();
  two_.OnKeeperChanged();
  EXPECT_EQ(two_.Confirm(lane_[0]), CUDA_ERROR_INVALID_VALUE) << "the keeper does not know it yet";
  one_.OnKeeperChanged();
  EXPECT_EQ(two_.Confirm(lane_[0]), CUDA_SUCCESS);
  one_.Free(lane_[0]);
  EXPECT_EQ(Listed(&one_).size(), 1u);
  uint64_t free_bytes = 0, total_bytes = 0;
  EXPECT_EQ(one_.MemoryInfo(0, &free_bytes, &total_bytes), CUDA_SUCCESS);
  EXPECT_EQ(total_bytes - free_bytes, 4 * kMiB) << "the other worker has it still";
  two_.Drop(lane_[0]);
  EXPECT_EQ(two_.MemoryInfo(0, &free_bytes, &total_bytes), CUDA_SUCCESS);
  EXPECT_EQ(total_bytes - free_bytes, 2 * kMiB);
}

TEST_F(ExtentsTest, WhatTheKeeperWasNotToldOfIsLetGoWithoutAWord) {
  EXPECT_TRUE(claim_of_one_->Enter());
  Replace();
  two_.OnKeeperChanged();
  one_.OnKeeperChanged();
  two_.Free(lane_[0]);  // by an old picture of the lane
  EXPECT_EQ(Listed(&two_).size(), 2u);
}

}  // namespace
}  // namespace keeper
