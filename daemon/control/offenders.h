// Sessions whose work ends their worker: by a fault of the device, by a crash, or by a kernel that
// does not end. Finds the session, records the fault, and counts it against the program.
//
// Thread safety: one thread, the loop's.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/common/event_loop.h"
#include "daemon/control/children.h"
#include "daemon/control/observers.h"
#include "daemon/control/placement.h"
#include "daemon/control/scheduler_port.h"
#include "daemon/control/session_table.h"

namespace control {

class Offenders {
 public:
  struct Parts {
    common::EventLoop* loop;
    Children* children;
    SessionTable* sessions;
    const SchedulerPort* scheduler;
    Observers* observers;
    Placement* placement;
  };
  // The parts outlive this object. `kill_timeout_s` is named in the fault of a session that is
  // overdue.
  Offenders(const Parts& parts, std::string runtime_dir, int64_t kill_timeout_s);

  // The worker's context is poisoned; the worker's end follows.
  void OnPoisoned(uint32_t worker, const ipc::control::Poisoned& poisoned);
  // The worker has ended. Returns the session whose work ended it by a signal; 0: none is known.
  // Any end that was not expected is recorded as a fault.
  uint64_t OnWorkerLost(uint32_t worker, const WorkerLoss& loss);
  // The session has been ending for longer than the timeout.
  void OnOverdue(uint64_t id);

 private:
  uint64_t BlameForCrash(uint32_t worker);
  void NoteOffence(const Session& culprit);

  const Parts parts_;
  const std::string runtime_dir_;
  const int64_t kill_timeout_s_;
  uint32_t poisoned_worker_ = 0;  // said so; its end follows
};

}  // namespace control
