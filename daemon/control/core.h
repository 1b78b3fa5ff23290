// The objects that lanewayd's other parts are built on: records of sessions, jobs and workers, the
// scheduler, and the objects that carry decisions to sessions. Made in the order of their needs.
//
// A part that needs few of these objects takes pointers to them. A part that needs most takes the
// core. Thread safety: one thread, the loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "daemon/common/event_loop.h"
#include "daemon/control/children.h"
#include "daemon/control/grants.h"
#include "daemon/control/jobs.h"
#include "daemon/control/lane_registry.h"
#include "daemon/control/observers.h"
#include "daemon/control/placement.h"
#include "daemon/control/scheduler_port.h"
#include "daemon/control/session_lifecycle.h"
#include "daemon/control/session_table.h"
#include "ipc/futex.h"
#include "ipc/options.h"
#include "ipc/state_dir.h"

namespace control {

// The clock, the directory and the limits that lanewayd takes from its machine. A test replaces
// them.
struct Surroundings {
  // A monotonic clock.
  std::function<int64_t()> now_us = [] { return ipc::MonotonicNs() / 1000; };
  std::string state_dir = ipc::StateDir();  // empty: the history is kept in memory alone
  std::optional<scheduler::Limits> limits;  // in place of those that the options give
};

struct Core {
  // All of these outlive the core.
  struct Partners {
    common::EventLoop* loop;
    Children* children;
    ActionExecutor* executor;
    SessionLifecycle::Listener* listener;
  };
  Core(const ipc::Options& given, const Partners& partners, const Surroundings& around);

  // Tells the scheduler how much memory the devices have, and how much of it the user may have.
  void TellCapacity();

  const ipc::Options options;
  common::EventLoop* const loop;
  Children* const children;
  const std::function<int64_t()> now_us;
  SessionTable sessions;
  Jobs jobs;
  Placement placement;
  SchedulerPort scheduler;
  Observers observers;
  LaneRegistry lanes;
  SessionLifecycle lifecycle;
  Grants grants;
};

}  // namespace control
