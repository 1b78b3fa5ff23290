// A session over the rings of its file, for tests of how it reacts to its client and to lanewayd.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "daemon/worker/jobs.h"
#include "daemon/worker/lanes.h"
#include "daemon/worker/session_impl.h"
#include "tests/daemon/worker/recording_driver.h"

namespace worker {

class IgnorePoison : public PoisonSink {
 public:
  void OnPoisoned(uint64_t, CUresult, const std::string&) override {}
};

class SessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    FreshRecording().capacity_bytes = 64 << 20;
    environment_ = RecordingEnvironment();
    driver_ = *environment_.driver;
    environment_.driver = &driver_;
    environment_.cublas = &ipc::NullCublas();
    environment_.cublaslt = &ipc::NullCublasLt();
    environment_.contexts = {reinterpret_cast<CUcontext>(1)};
    environment_.poison = &poison_;
    environment_.lanes = &lanes_;
    environment_.jobs = &jobs_;
    Equip();
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
  // Adds to the session's environment and driver.
  virtual void Equip() {}

  IgnorePoison poison_;
  ipc::DriverTable driver_;
  Environment environment_;
  LaneTable lanes_{&environment_};
  JobBooks jobs_;
  std::unique_ptr<ipc::SessionFile> file_;
  ipc::Channel client_;  // the client's end
  std::unique_ptr<SessionImpl> session_;
};

}  // namespace worker
