// A client that writes into its page what it likes, or asks without end: its session ends, or its
// call fails, and nothing else does.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "daemon/worker/handle_map.h"
#include "daemon/worker/jobs.h"
#include "daemon/worker/lanes.h"
#include "daemon/worker/pinned.h"
#include "daemon/worker/session_impl.h"
#include "tests/worker/recording_driver.h"

namespace worker {
namespace {

namespace limits = ipc::limits;

constexpr std::chrono::seconds kEndsWithin{20};

class IgnorePoison : public PoisonSink {
 public:
  void OnPoisoned(uint64_t, CUresult, const std::string&) override {}
};

// A session over the rings of its file, and the client's end of them.
class HostileSessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    FreshRecording().capacity_bytes = 64 << 20;
    environment_ = RecordingEnvironment();
    driver_ = *environment_.driver;
    driver_.cuLaunchKernelEx = [](const CUlaunchConfig*, CUfunction, void**, void**) {
      ++launches;
      return CUDA_SUCCESS;
    };
    environment_.driver = &driver_;
    environment_.cublas = &ipc::NullCublas();
    environment_.cublaslt = &ipc::NullCublasLt();
    environment_.contexts = {reinterpret_cast<CUcontext>(1)};
    environment_.poison = &poison_;
    environment_.lanes = &lanes_;
    environment_.jobs = &jobs_;
    const absl::StatusOr<int> fd = ipc::SessionFile::Create(1, 0);
    ASSERT_TRUE(fd.ok()) << fd.status();
    absl::StatusOr<ipc::SessionFile> theirs = ipc::SessionFile::Map(*fd);
    absl::StatusOr<ipc::SessionFile> ours = ipc::SessionFile::Map(*fd);
    close(*fd);
    ASSERT_TRUE(theirs.ok() && ours.ok());
    file_ = std::make_unique<ipc::SessionFile>(std::move(*ours));
    client_ = file_->ClientChannel();
    SessionSetup setup{.session_id = 1, .slot = 0, .file = std::move(*theirs), .channel = {}};
    setup.channel = setup.file.WorkerChannel();
    std::string error;
    session_ = std::make_unique<SessionImpl>(std::move(setup), environment_);
    ASSERT_TRUE(session_->Reserve(&error)) << error;
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
  IgnorePoison poison_;
  ipc::DriverTable driver_;
  Environment environment_;
  LaneTable lanes_{&environment_};
  JobBooks jobs_;
  std::unique_ptr<ipc::SessionFile> file_;
  ipc::Channel client_;
  std::unique_ptr<SessionImpl> session_;
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
  EXPECT_FALSE(session_->Alive());
  file_->page()->loss.store(0);
  EXPECT_FALSE(session_->Alive());
  EXPECT_TRUE(EndsByItself());
}

TEST_F(HostileSessionTest, WhatItSaysOfItsQuietPointDeceivesNobody) {
  EXPECT_TRUE(session_->quiet());
  file_->page()->quiet_position.store(4711);
  EXPECT_TRUE(session_->quiet());
  EXPECT_FALSE(session_->Replays());
  file_->page()->replaying.store(1);
  EXPECT_FALSE(session_->Replays()) << "it never was in another worker";
}

}  // namespace
}  // namespace worker
