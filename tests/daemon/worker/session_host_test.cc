// The sessions of a worker process with their threads, over the recording driver. The test is their
// lanewayd. No two sessions are made or end at the same time: the recording is for one thread.
#include "daemon/worker/session_host.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "daemon/worker/outbox.h"
#include "ipc/socket.h"
#include "tests/daemon/worker/session_fixture.h"

namespace worker {
namespace {

namespace wire = ipc::control;

class SessionHostTest : public ::testing::Test, public DaemonLink {
 protected:
  void SetUp() override {
    FreshRecording().capacity_bytes = 64 << 20;
    environment_ = RecordingEnvironment();
    environment_.cublas = &ipc::NullCublas();
    environment_.cublaslt = &ipc::NullCublasLt();
    environment_.contexts = {reinterpret_cast<CUcontext>(1)};
    environment_.poison = &poison_;
    environment_.lanes = &lanes_;
    environment_.daemon = this;
  }
  void Post(const wire::WorkerToDaemon& message) override { outbox_.Post(message); }
  uint64_t Daemon() const override { return 1; }

  std::string Attach(uint64_t id, const ipc::Tables& tables = ipc::OwnTables()) {
    wire::SessionRecord record;
    record.session_id = id;
    record.slot = static_cast<uint32_t>(id);
    record.tables = tables;
    common::SessionFds fds;
    fds.file = ipc::UniqueFd(*ipc::SessionFile::Create(id, 0));
    fds.pinned = ipc::UniqueFd(memfd_create("pinned", MFD_CLOEXEC));
    fds.process = *ipc::OpenPidfd(getpid());
    fds.swap = ipc::UniqueFd(memfd_create("swap", MFD_CLOEXEC));
    pages_.emplace(id, std::move(*ipc::SessionFile::Map(fds.file.get())));
    return host_.Attach(record, std::move(fds));
  }
  // The next message of the sessions' threads.
  template <class M>
  M Next() {
    while (heard_.empty()) {
      loop_.After(1000, [] {});
      loop_.RunOnce();
    }
    const wire::WorkerToDaemon message = heard_.front();
    heard_.erase(heard_.begin());
    EXPECT_TRUE(std::holds_alternative<M>(message)) << message.index();
    return std::holds_alternative<M>(message) ? std::get<M>(message) : M();
  }
  void AttachAndAwait(uint64_t id) {
    ASSERT_EQ(Attach(id), "");
    const wire::Attached attached = Next<wire::Attached>();
    ASSERT_EQ(attached.result, 0u) << attached.sentence;
  }
  void End(uint64_t id) {
    host_.Stop(id);
    EXPECT_EQ(Next<wire::SessionEnded>().session_id, id);
    host_.Retire(id);
  }
  uint32_t LossOf(uint64_t id) { return pages_.at(id).page()->loss.load(); }

  IgnorePoison poison_;
  Environment environment_;
  LaneTable lanes_{&environment_};
  common::EventLoop loop_;
  std::vector<wire::WorkerToDaemon> heard_;
  Outbox outbox_{&loop_, [this] {
                   for (const wire::WorkerToDaemon& message : outbox_.Take())
                     heard_.push_back(message);
                 }};
  std::map<uint64_t, ipc::SessionFile> pages_;
  SessionHost host_{&environment_, &loop_, ""};
};

TEST_F(SessionHostTest, ASessionRunsUntilItIsStopped) {
  AttachAndAwait(1);
  EXPECT_TRUE(host_.Has(1));
  End(1);
  EXPECT_TRUE(host_.empty());
}

TEST_F(SessionHostTest, AnOrderToLeaveIsKeptUntilTheSessionIsMade) {
  ASSERT_EQ(Attach(1), "");
  host_.Release(1);
  Next<wire::Attached>();
  EXPECT_EQ(Next<wire::SessionReleased>().session_id, 1u);
  host_.Retire(1);
}

TEST_F(SessionHostTest, ASessionThatCannotBeMadeSaysWhyAndEnds) {
  ASSERT_EQ(Attach(1, {}), "") << "its thread finds out";
  const wire::Attached refused = Next<wire::Attached>();
  EXPECT_NE(refused.result, 0u);
  EXPECT_STRNE(refused.sentence, "");
  Next<wire::SessionEnded>();
  host_.Retire(1);
}

TEST_F(SessionHostTest, AFaultIsTheOnlySessions) {
  AttachAndAwait(1);
  const std::optional<wire::Poisoned> report =
      host_.LoseAtFault(0, CUDA_ERROR_ILLEGAL_ADDRESS, "words");
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->session_id, 1u);
  EXPECT_EQ(LossOf(1), static_cast<uint32_t>(CUDA_ERROR_ILLEGAL_ADDRESS));
  EXPECT_FALSE(host_.LoseAtFault(0, CUDA_ERROR_ILLEGAL_ADDRESS, "words").has_value());
  End(1);
}

TEST_F(SessionHostTest, AFaultLosesNoSessionWithNothingInFlight) {
  AttachAndAwait(1);
  AttachAndAwait(2);
  host_.LoseAtFault(1, CUDA_ERROR_ILLEGAL_ADDRESS, "words");
  EXPECT_EQ(LossOf(1), static_cast<uint32_t>(CUDA_ERROR_ILLEGAL_ADDRESS));
  EXPECT_EQ(LossOf(2), 0u);
  EXPECT_EQ(Next<wire::SessionEnded>().session_id, 1u) << "it is lost";
  host_.Retire(1);
  End(2);
}

TEST_F(SessionHostTest, WhatLanewaydAsksIsUpToDate) {
  AttachAndAwait(1);
  host_.Record(1)->pause = scheduler::Pause::kEvicted;
  EXPECT_EQ(host_.Record(2), nullptr);
  size_t listed = 0;
  host_.List([&](wire::SessionRecord* record, std::span<const int> fds) {
    ++listed;
    EXPECT_EQ(record->session_id, 1u);
    EXPECT_EQ(record->pause, scheduler::Pause::kEvicted);
    EXPECT_EQ(fds.size(), 4u);
    EXPECT_FALSE(ipc::ProcessEnded(fds[2])) << "this process lives";  // as SessionFds has them
  });
  EXPECT_EQ(listed, 1u);
  End(1);
}

}  // namespace
}  // namespace worker
