// A client that writes into its page what it likes, or asks without end: its session ends, or its
// call fails, and nothing else does.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <future>
#include <utility>

#include "daemon/worker/handle_map.h"
#include "daemon/worker/pinned.h"
#include "tests/daemon/worker/session_fixture.h"

namespace worker {
namespace {

namespace limits = ipc::limits;

constexpr std::chrono::seconds kEndsWithin{20};

class HostileSessionTest : public SessionTest {
 protected:
  void Equip() override {
    driver_.cuLaunchKernelEx = [](const CUlaunchConfig*, CUfunction, void**, void**) {
      ++launches;
      return CUDA_SUCCESS;
    };
  }
  void Send(ipc::MessageHeader header, size_t bytes) {
    const std::span<std::byte> room = client_.sender->Reserve(bytes, 1'000'000);
    ASSERT_EQ(room.size(), bytes);
    std::memcpy(room.data(), &header, sizeof header);
    client_.sender->Commit(bytes);
  }
  // False: it had to be stopped.
  bool EndsByItself() {
    std::future<void> run = std::async(std::launch::async, [this] { session_->Run(); });
    const bool ended = run.wait_for(kEndsWithin) == std::future_status::ready;
    session_->Stop();
    return ended;
  }

  static inline int launches = 0;
};

TEST_F(HostileSessionTest, AnImpossibleLengthEndsTheSession) {
  Send({.bytes = 3}, sizeof(ipc::MessageHeader));
  EXPECT_TRUE(EndsByItself());
  EXPECT_EQ(file_->page()->loss.load(), uint32_t{CUDA_ERROR_MPS_RPC_FAILURE});
}

TEST_F(HostileSessionTest, WhoKeepsItsLossFromBeingWrittenEndsAllTheSame) {
  file_->page()->loss_text_ready.store(1);
  Send({.bytes = 3}, sizeof(ipc::MessageHeader));
  EXPECT_TRUE(EndsByItself()) << "the page is not where the worker keeps it";
}

TEST_F(HostileSessionTest, WhoSaysThatItIsLostCannotTakeItBack) {
  file_->page()->loss.store(CUDA_ERROR_MPS_RPC_FAILURE);
  EXPECT_FALSE(session_->life().Alive());
  file_->page()->loss.store(0);
  EXPECT_FALSE(session_->life().Alive());
  EXPECT_TRUE(EndsByItself());
}

TEST_F(HostileSessionTest, WhatItSaysOfItsQuietPointDeceivesNobody) {
  EXPECT_TRUE(session_->quiet());
  file_->page()->quiet_position.store(4711);
  EXPECT_TRUE(session_->quiet());
  EXPECT_FALSE(session_->life().Replays());
  file_->page()->replaying.store(1);
  EXPECT_FALSE(session_->life().Replays()) << "it never was in another worker";
}

TEST_F(HostileSessionTest, WhoPretendsToReplayKeepsNothingOfALaneThatItDoesNotUse) {
  const CUdeviceptr in_lane = limits::kSlotBase + limits::kEphemeralOffset;
  EXPECT_EQ(session_->handlers().memory().LaneKeep(in_lane, 2 << 20), CUDA_ERROR_ILLEGAL_STATE);
  file_->page()->replaying.store(1);
  EXPECT_EQ(session_->handlers().memory().LaneKeep(in_lane, 2 << 20), CUDA_ERROR_ILLEGAL_STATE);
}

// The driver's own stream is in no table: work there outlives the session that put it there.
TEST_F(HostileSessionTest, AShortCopyWithinTheDeviceStaysInItsStream) {
  static int synchronous, asynchronous;
  synchronous = asynchronous = 0;
  driver_.cuMemcpy = [](CUdeviceptr, CUdeviceptr, size_t) {
    ++synchronous;
    return CUDA_SUCCESS;
  };
  driver_.cuMemcpyAsync = [](CUdeviceptr, CUdeviceptr, size_t, CUstream) {
    ++asynchronous;
    return CUDA_SUCCESS;
  };
  session_->handlers().UseDevice(1);
  void* stream = nullptr;
  ASSERT_TRUE(session_->handlers().door().Translate(ipc::HandleKind::kStream,
                                                    ipc::HandleId::kLegacyStream, &stream));
  const ipc::Mark waited_for{1, 1, 0};
  EXPECT_EQ(session_->handlers().copies().CopyDevice(limits::kSlotBase, limits::kSlotBase + 4096, 8,
                                                     static_cast<CUstream>(stream), waited_for),
            CUDA_SUCCESS);
  EXPECT_EQ(synchronous, 0);
  EXPECT_EQ(asynchronous, 1);
}

// --- without end ---------------------------------------------------------------------------------

TEST_F(HostileSessionTest, StreamsEndWithTheirSlots) {
  CUstream stream = nullptr;
  session_->handlers().UseDevice(1);
  for (unsigned slot = limits::kLegacySlots; slot < limits::kStreamsMax; ++slot)
    ASSERT_EQ(session_->handlers().streams().StreamCreate(&stream, 0, 0, slot), CUDA_SUCCESS);
  CUstream more = nullptr;
  EXPECT_EQ(session_->handlers().streams().StreamCreate(&more, 0, 0, limits::kLegacySlots),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(session_->handlers().streams().StreamDestroy(stream), CUDA_SUCCESS);
  EXPECT_EQ(session_->handlers().streams().StreamCreate(&more, 0, 0, limits::kStreamsMax - 1),
            CUDA_SUCCESS);
}

TEST_F(HostileSessionTest, NamesOfEachKindEnd) {
  const HandleMap handles;
  for (const auto& [kind, most] :
       {std::pair(ipc::HandleKind::kEvent, limits::kEventsMax),
        std::pair(ipc::HandleKind::kModule, limits::kModulesMax),
        std::pair(ipc::HandleKind::kFunction, limits::kFunctionsMax),
        std::pair(ipc::HandleKind::kGraphExec, limits::kGraphPiecesMax),
        std::pair(ipc::HandleKind::kStream, limits::kStreamsMax),
        std::pair(ipc::HandleKind::kBlas, limits::kLibraryHandlesMax),
        std::pair(ipc::HandleKind::kLtMatmulDesc, limits::kLibraryObjectsMax)}) {
    EXPECT_TRUE(handles.MayName(kind, static_cast<ipc::HandleId>(most - 1)));
    EXPECT_FALSE(handles.MayName(kind, static_cast<ipc::HandleId>(most)));
  }
}

TEST_F(HostileSessionTest, PinnedRangesEnd) {
  const int fd = memfd_create("pinned", 0);
  ASSERT_EQ(ftruncate(fd, limits::kPinnedWindowBytes), 0);
  PinnedMemory pinned(environment_, 1, fd);
  const uint64_t base = limits::kSlotBase + limits::kSlotBytes + limits::kDeviceArenaBytes;
  for (uint64_t i = 0; i < limits::kPinnedRangesMax; ++i)
    ASSERT_EQ(pinned.Map(base + i * 8192, 4096, 0), CUDA_SUCCESS) << i;
  const uint64_t next = base + uint64_t{limits::kPinnedRangesMax} * 8192;
  EXPECT_EQ(pinned.Map(next, 4096, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(pinned.Unmap(base), CUDA_SUCCESS);
  EXPECT_EQ(pinned.Map(next, 4096, 0), CUDA_SUCCESS);
}

// --- launches ------------------------------------------------------------------------------------

TEST_F(HostileSessionTest, ALaunchHasTheAttributesThatConcernItAlone) {
  session_->handlers().UseDevice(1);
  const auto launch = [this](unsigned id) {
    const ipc::LaunchAttribute attribute{.id = id, .value = {1, 1, 1}};
    return session_->handlers().modules().Launch(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, &attribute,
                                                 1, nullptr, 0);
  };
  launches = 0;
  EXPECT_EQ(launch(CU_LAUNCH_ATTRIBUTE_COOPERATIVE), CUDA_SUCCESS);
  EXPECT_EQ(launch(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION), CUDA_SUCCESS);
  EXPECT_EQ(launch(CU_LAUNCH_ATTRIBUTE_PRIORITY), CUDA_SUCCESS);
  EXPECT_EQ(launches, 3);
  for (unsigned id = 0; id < 64; ++id) {
    if (!ipc::IsLaunchAttribute(id)) {
      EXPECT_EQ(launch(id), CUDA_ERROR_NOT_SUPPORTED) << id;
    }
  }
  EXPECT_EQ(launches, 3) << "an access policy window, say, is one of the whole device's cache";
}

}  // namespace
}  // namespace worker
