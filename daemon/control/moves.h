// Sessions that change their worker: after the worker's loss, for an upgrade, into a worker of
// their own. docs/recovery.md has the whole.
//
//     running --worker lost, or released--> moving --a worker is ready--> entering --Attached-->
//     running, in the next generation: the program's client does the rest
//
// Thread safety: one thread, the loop's.
#pragma once

#include <string>

#include "daemon/control/children.h"
#include "daemon/control/grants.h"
#include "daemon/control/observers.h"
#include "daemon/control/scheduler_port.h"
#include "daemon/control/session_lifecycle.h"
#include "daemon/control/session_table.h"
#include "daemon/control/worker_link.h"

namespace control {

class Moves {
 public:
  struct Parts {
    Children* children;
    SchedulerPort* scheduler;
    Observers* observers;
    SessionLifecycle* lifecycle;
    Grants* grants;
    WorkerLink* worker_link;
  };
  // The parts outlive this object.
  explicit Moves(const Parts& parts) : parts_(parts) {}

  // The session has no worker any more and waits for another. False: it can't move, and nothing has
  // changed.
  bool Begin(Session* session);
  // Starts a worker for a session that waits between two, or hands the session to the worker that
  // is ready. The session is lost when no worker can be started.
  void Serve(Session* session);
  // The worker has taken the session over, or refuses it.
  void OnEntered(Session* session, const ipc::control::Attached& attached);
  // No worker can go on with the session. `sentence`: for its program.
  void Lose(Session* session, const std::string& sentence);

 private:
  const Parts parts_;
};

}  // namespace control
