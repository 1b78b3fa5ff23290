// The parts of lanewayd that others are made of, over children that are no processes.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "daemon/control/core.h"
#include "daemon/control/worker_link.h"
#include "ipc/socket.h"
#include "tests/daemon/control/testing.h"

namespace control {

class PartsTest : public ::testing::Test, public SessionLifecycle::Listener {
 protected:
  PartsTest() {
    children_.AddWorker(1);
    scheduler_.Serve();
  }
  void OnOverdue(uint64_t) override {}

  // A session that the scheduler has admitted and worker 1 runs; its program is this process.
  Session* Admitted(uint64_t id) {
    scheduler_.Apply(scheduler::SessionArrived{.session = id});
    Session* const session = AddRunning(&sessions_, id, 0, 1, &worker_link_);
    session->fds.process = *ipc::OpenPidfd(getpid());
    session->fds.swap = ipc::UniqueFd(memfd_create("swap", MFD_CLOEXEC));
    return session;
  }
  const scheduler::Session* Known(uint64_t id) const { return scheduler_.state().Find(id); }

  static ipc::Options OneLane() {
    ipc::Options options;
    options.runtime_dir = "/nonexistent";
    options.policy = "fifo";
    options.lanes = 1;
    options.kill_timeout_s = 0;
    options.max_iteration_s = 0;
    return options;
  }

  common::EventLoop loop_;
  FakeChildren children_;
  NoExecutor executor_;
  Core core_{OneLane(), {&loop_, &children_, &executor_, this}, {[] { return 1'000'000; }, "", {}}};
  SessionTable& sessions_ = core_.sessions;
  SchedulerPort& scheduler_ = core_.scheduler;
  Observers& observers_ = core_.observers;
  LaneRegistry& lanes_ = core_.lanes;
  Placement& placement_ = core_.placement;
  SessionLifecycle& lifecycle_ = core_.lifecycle;
  Grants& grants_ = core_.grants;
  WorkerLink worker_link_{{&children_, &sessions_, &lifecycle_, &grants_, &observers_.verdicts()}};
};

}  // namespace control
