// The memory of a session at boundaries, after a reset, and on its way to the host and back.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "daemon/worker/backed_addresses.h"
#include "daemon/worker/gate.h"
#include "daemon/worker/swap.h"
#include "tests/daemon/worker/session_fixture.h"

namespace worker {
namespace {

namespace limits = ipc::limits;
namespace wire = ipc::control;
using limits::MiB;

constexpr uint64_t kSessionLane = 5;
constexpr uint64_t kStep = 2 * MiB;
constexpr CUdeviceptr kPersistent = limits::kSlotBase;
constexpr CUdeviceptr kEphemeral = limits::kSlotBase + limits::kEphemeralOffset;

// The test is the session's lanewayd and grants every request. The session's gate is open.
class SessionMemoryTest : public SessionTest, public DaemonLink {
 protected:
  void Equip() override {
    environment_.board = &board_;
    environment_.daemon = this;
    environment_.swap = &swap_;
    environment_.backed = &backed_;
  }
  void SetUp() override {
    SessionTest::SetUp();
    board_.Grant(1, kSessionLane);
    session_->handlers().UseDevice(1);
  }
  void TearDown() override { session_.reset(); }  // its gate before the board

  void Post(const wire::WorkerToDaemon& message) override {
    if (std::holds_alternative<wire::MemoryNeeded>(message)) {
      session_->OnDecision(wire::MemoryAnswer{1, 0});
    } else if (const wire::LaneNeeded* lane = std::get_if<wire::LaneNeeded>(&message)) {
      session_->OnDecision(wire::AssignLane{1, lane_, lane->bytes, 0, 0, 1});
    } else if (const wire::Swapped* swapped = std::get_if<wire::Swapped>(&message)) {
      const std::lock_guard<std::mutex> lock(mutex_);
      swapped_ = *swapped;
      mapped_ = recording_.mapped;
      ++moves_;
      moved_.notify_all();
    } else if (const wire::MemoryFreed* freed = std::get_if<wire::MemoryFreed>(&message)) {
      freed_bytes_ += freed->bytes;
    }
  }
  uint64_t Daemon() const override { return daemon_; }

  void Order(bool out) {
    ++ordered_;
    session_->OnDecision(wire::Swap{1, out ? 1u : 0u, 0});
  }
  // Orders it, and waits for the answer of the session's thread.
  wire::Swapped Move(bool out) {
    Order(out);
    std::unique_lock<std::mutex> lock(mutex_);
    moved_.wait(lock, [&] { return moves_ == ordered_; });
    return swapped_;
  }
  // From now on, or no longer.
  void LetMappingFail(bool fails) {
    driver_.cuMemMap = !fails ? RecordingEnvironment().driver->cuMemMap
                              : [](CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle,
                                   unsigned long long) { return CUDA_ERROR_OUT_OF_MEMORY; };
  }

  Recording& recording_ = FreshRecording();
  uint64_t daemon_ = 1;
  uint64_t lane_ = kSessionLane;
  BackedAddresses backed_;
  SwapSpace swap_{64 * MiB};
  Board board_{[](const wire::WorkerToDaemon&) {}};
  std::mutex mutex_;
  std::condition_variable moved_;
  std::atomic<uint64_t> freed_bytes_{0};
  int ordered_ = 0, moves_ = 0;
  wire::Swapped swapped_;
  std::set<CUdeviceptr> mapped_;
};

// The same session on a thread of its own.
class RunningSessionTest : public SessionMemoryTest {
 protected:
  void Start() {
    thread_ = std::thread([this] { session_->Run(); });
  }
  void TearDown() override {
    session_->Stop();
    if (thread_.joinable()) thread_.join();
    SessionMemoryTest::TearDown();
  }
  std::thread thread_;
};

// --- at boundaries -------------------------------------------------------------------------------

// A block could come to lie in the hole, and be kept there.
TEST_F(SessionMemoryTest, WhereItsLaneCanNotBeMappedAgainItEntersAnew) {
  ASSERT_EQ(session_->handlers().memory().LaneReserve(kStep), CUDA_SUCCESS);
  ASSERT_EQ(session_->handlers().memory().LaneReserve(2 * kStep), CUDA_SUCCESS);
  ASSERT_EQ(session_->handlers().memory().LaneKeep(kEphemeral, kStep), CUDA_SUCCESS);
  ASSERT_EQ(session_->handlers().memory().LaneDrop(kEphemeral), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.Look(kSessionLane).holder, 1u);
  LetMappingFail(true);
  const ipc::BoundaryInfo boundary;
  ASSERT_EQ(session_->handlers().session().Boundary(&boundary), CUDA_SUCCESS);
  EXPECT_EQ(recording_.mapped.count(kEphemeral), 0u);
  EXPECT_EQ(session_->handlers().memory().LaneKeep(kEphemeral, kStep), CUDA_ERROR_ILLEGAL_STATE);
  LetMappingFail(false);
  ASSERT_EQ(session_->handlers().memory().LaneReserve(3 * kStep), CUDA_SUCCESS);
  EXPECT_EQ(lanes_.Look(kSessionLane).holder, 1u);
  EXPECT_EQ(recording_.mapped.count(kEphemeral), 1u);
}

// The program ends while its session waits to change lanes, and what holds its stream lets go
// later.
TEST_F(SessionMemoryTest, ASessionThatEndsBeforeItsWorkLeavesItsLaneMapped) {
  static std::atomic<uint32_t>* loss;
  loss = &file_->page()->loss;
  ASSERT_EQ(session_->handlers().memory().LaneReserve(kStep), CUDA_SUCCESS);
  CUstream stream = nullptr;
  ASSERT_EQ(session_->handlers().streams().StreamCreate(&stream, 0, 0, limits::kLegacySlots),
            CUDA_SUCCESS);
  driver_.cuStreamQuery = [](CUstream) {
    loss->store(CUDA_ERROR_MPS_RPC_FAILURE);
    return CUDA_ERROR_NOT_READY;
  };
  lane_ = kSessionLane + 1;
  EXPECT_EQ(session_->handlers().memory().LaneReserve(2 * kStep), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(recording_.mapped.count(kEphemeral), 1u);
  driver_.cuStreamQuery = RecordingEnvironment().driver->cuStreamQuery;
}

// --- where its client begins anew ----------------------------------------------------------------

// There is no lanewayd, which would put it into another lane and so have it enter.
TEST_F(SessionMemoryTest, AfterAResetItEntersItsLaneAnew) {
  constexpr uint64_t kOwnLane = wire::OwnLaneOf(1);
  daemon_ = 0;
  ASSERT_EQ(session_->handlers().memory().LaneReserve(kStep), CUDA_SUCCESS);
  EXPECT_EQ(lanes_.Look(kOwnLane).holder, 1u);
  ASSERT_EQ(session_->handlers().session().ContextReset(0), CUDA_SUCCESS);
  EXPECT_TRUE(recording_.mapped.empty());
  ASSERT_EQ(session_->handlers().memory().LaneReserve(kStep), CUDA_SUCCESS);
  EXPECT_EQ(lanes_.Look(kOwnLane).holder, 1u);
}

// --- where the program maps its memory -----------------------------------------------------------

TEST_F(SessionMemoryTest, MemoryThatIsNotMappedYetMovesAtOnce) {
  MemoryHandler& memory = session_->handlers().memory();
  CUstream stream = nullptr;
  ASSERT_EQ(session_->handlers().streams().StreamCreate(&stream, 0, 0, limits::kLegacySlots),
            CUDA_SUCCESS);
  recording_.busy_streams.insert(stream);
  ASSERT_EQ(memory.ArenaCreate(kPersistent, 3 * kStep), CUDA_SUCCESS);
  recording_.At(kPersistent + 2 * kStep) = 77;
  ASSERT_EQ(memory.ArenaMove(kPersistent, kPersistent + 8 * kStep), CUDA_SUCCESS);
  EXPECT_TRUE(BackedView(&backed_, 0).Covers(kPersistent + 8 * kStep, 3 * kStep));
  EXPECT_FALSE(BackedView(&backed_, 0).Covers(kPersistent, 1));
  EXPECT_EQ(recording_.At(kPersistent + 10 * kStep), 77);
  EXPECT_EQ(memory.ArenaUnmap(kPersistent), CUDA_ERROR_INVALID_VALUE);
  recording_.busy_streams.clear();
  ASSERT_EQ(memory.ArenaUnmap(kPersistent + 8 * kStep), CUDA_SUCCESS);
  EXPECT_TRUE(recording_.mapped.empty());
}

TEST_F(SessionMemoryTest, MemoryThatWorkMayUseWaitsForTheDevice) {
  MemoryHandler& memory = session_->handlers().memory();
  CUstream stream = nullptr;
  ASSERT_EQ(session_->handlers().streams().StreamCreate(&stream, 0, 0, limits::kLegacySlots),
            CUDA_SUCCESS);
  ASSERT_EQ(memory.ArenaMap(kPersistent, kStep), CUDA_SUCCESS);
  ASSERT_EQ(memory.ArenaMap(kPersistent + kStep, kStep), CUDA_SUCCESS);
  recording_.busy_streams.insert(stream);
  EXPECT_EQ(memory.ArenaMove(kPersistent, kPersistent + 2 * kStep), CUDA_ERROR_NOT_READY);
  recording_.busy_streams.clear();
  EXPECT_EQ(memory.ArenaMove(kPersistent, kPersistent + kStep), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(memory.ArenaMove(kPersistent, kEphemeral), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(memory.ArenaMove(kPersistent, kPersistent + 2 * kStep + 512), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(memory.ArenaMove(kPersistent + 512, kPersistent + 2 * kStep), CUDA_ERROR_INVALID_VALUE);
  LetMappingFail(true);
  EXPECT_EQ(memory.ArenaMove(kPersistent, kPersistent + 2 * kStep), CUDA_ERROR_OUT_OF_MEMORY);
  LetMappingFail(false);
  EXPECT_TRUE(BackedView(&backed_, 0).Covers(kPersistent, 2 * kStep)) << "as before";
  EXPECT_EQ(memory.ArenaMove(kPersistent, kPersistent + 2 * kStep), CUDA_SUCCESS);
  EXPECT_TRUE(BackedView(&backed_, 0).Covers(kPersistent + kStep, 2 * kStep));
}

// Its second extent finds no place.
TEST_F(SessionMemoryTest, ARangeThatCanNotBeMappedWholeStays) {
  MemoryHandler& memory = session_->handlers().memory();
  ASSERT_EQ(memory.ArenaMap(kPersistent, 3 * kStep), CUDA_SUCCESS);
  driver_.cuMemMap = [](CUdeviceptr address, size_t bytes, size_t offset,
                        CUmemGenericAllocationHandle handle, unsigned long long flags) {
    if (address == kPersistent + 10 * kStep) return CUDA_ERROR_OUT_OF_MEMORY;
    return RecordingEnvironment().driver->cuMemMap(address, bytes, offset, handle, flags);
  };
  EXPECT_EQ(memory.ArenaMove(kPersistent, kPersistent + 8 * kStep), CUDA_ERROR_OUT_OF_MEMORY);
  driver_.cuMemMap = RecordingEnvironment().driver->cuMemMap;
  EXPECT_TRUE(BackedView(&backed_, 0).Covers(kPersistent, 3 * kStep));
  EXPECT_EQ(recording_.mapped.count(kPersistent + 8 * kStep), 0u);
  EXPECT_EQ(memory.ArenaMove(kPersistent, kPersistent + 8 * kStep), CUDA_SUCCESS);
}

TEST_F(SessionMemoryTest, MemoryThatWasNeverMappedCanBeFreed) {
  MemoryHandler& memory = session_->handlers().memory();
  ASSERT_EQ(memory.ArenaCreate(kPersistent, kStep), CUDA_SUCCESS);
  ASSERT_EQ(memory.ArenaUnmap(kPersistent), CUDA_SUCCESS);
  EXPECT_EQ(memory.ArenaUnmap(kPersistent), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(memory.ArenaMove(kPersistent, kPersistent + kStep), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(memory.ArenaMap(kPersistent, kStep), CUDA_SUCCESS);
  EXPECT_TRUE(BackedView(&backed_, 0).Covers(kPersistent, kStep));
}

// --- to the host and back ------------------------------------------------------------------------

// The range is freed while the device is busy, and the order to swap comes right after that.
TEST_F(RunningSessionTest, WhatWasFreedDoesNotComeBackFromTheHost) {
  CUstream stream = nullptr;
  ASSERT_EQ(session_->handlers().streams().StreamCreate(&stream, 0, 0, limits::kLegacySlots),
            CUDA_SUCCESS);
  ASSERT_EQ(session_->handlers().memory().ArenaMap(kPersistent, kStep), CUDA_SUCCESS);
  ASSERT_EQ(session_->handlers().memory().ArenaMap(kPersistent + kStep, kStep), CUDA_SUCCESS);
  recording_.busy_streams.insert(stream);
  recording_.unfinished_events.insert(reinterpret_cast<CUevent>(
      static_cast<uintptr_t>(recording_.next_handle)));  // the free waits for it
  ASSERT_EQ(session_->handlers().memory().ArenaUnmap(kPersistent), CUDA_SUCCESS);
  ASSERT_EQ(recording_.mapped.count(kPersistent), 1u);
  recording_.busy_streams.clear();
  recording_.unfinished_events.clear();
  Order(true);
  Start();
  EXPECT_EQ(Move(false).result, uint32_t{CUDA_SUCCESS});
  EXPECT_EQ(mapped_, std::set<CUdeviceptr>{kPersistent + kStep});
  EXPECT_EQ(freed_bytes_, kStep) << "lanewayd counts it no more";
}

TEST_F(RunningSessionTest, WhoIsOnTheHostIsNotToldThereAgain) {
  ASSERT_EQ(session_->handlers().memory().ArenaMap(kPersistent, kStep), CUDA_SUCCESS);
  recording_.At(kPersistent) = 77;
  Start();
  EXPECT_EQ(Move(true).result, uint32_t{CUDA_SUCCESS});
  const wire::Swapped again = Move(true);
  EXPECT_NE(again.result, uint32_t{CUDA_SUCCESS});
  EXPECT_STREQ(again.sentence, "it is there already");
  EXPECT_EQ(Move(false).result, uint32_t{CUDA_SUCCESS});
  EXPECT_EQ(recording_.At(kPersistent), 77);
}

}  // namespace
}  // namespace worker
