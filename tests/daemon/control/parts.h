// The parts of lanewayd that others are made of, over children that are no processes.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "daemon/control/grants.h"
#include "daemon/control/lane_registry.h"
#include "daemon/control/observers.h"
#include "daemon/control/placement.h"
#include "daemon/control/scheduler_port.h"
#include "daemon/control/session_lifecycle.h"
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
    session->pidfd = *ipc::OpenPidfd(getpid());
    session->swap_fd = ipc::UniqueFd(memfd_create("swap", MFD_CLOEXEC));
    return session;
  }
  const scheduler::Session* Known(uint64_t id) const { return scheduler_.state().Find(id); }

  common::EventLoop loop_;
  FakeChildren children_;
  SessionTable sessions_;
  NoExecutor executor_;
  SchedulerPort scheduler_{"fifo", FewSessions(), &loop_, &executor_, [] { return 1'000'000; }};
  Observers observers_{"", {&loop_, &sessions_, &scheduler_.state()}};
  LaneRegistry lanes_{{&sessions_, &scheduler_, &children_}};
  Placement placement_;
  SessionLifecycle lifecycle_{
      {&loop_, &sessions_, &scheduler_, &observers_, &lanes_}, {"/nonexistent", 0}, this};
  Grants grants_{{&sessions_, &children_, &scheduler_, &observers_, &lanes_, &lifecycle_}, 0, [] {
                   return 1'000'000;
                 }};
  WorkerLink worker_link_{{&children_, &sessions_, &lifecycle_, &grants_}};
};

}  // namespace control
