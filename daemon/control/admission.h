// How a program becomes a session, and how it stops being one: from the hello by way of the
// scheduler's admission, slot, files and worker to the welcome, and the end of its process.
//
// Sessions that an earlier lanewayd admitted are taken in as they are (Adopt). Thread safety: one
// thread, the loop's.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/common/event_loop.h"
#include "daemon/control/children.h"
#include "daemon/control/grants.h"
#include "daemon/control/in_process.h"
#include "daemon/control/jobs.h"
#include "daemon/control/lane_registry.h"
#include "daemon/control/observers.h"
#include "daemon/control/placement.h"
#include "daemon/control/scheduler_port.h"
#include "daemon/control/session_lifecycle.h"
#include "daemon/control/session_link.h"
#include "daemon/control/session_table.h"
#include "ipc/hello.h"
#include "ipc/socket.h"

namespace control {

class Admission {
 public:
  static constexpr int kAttemptsMax = 3;  // of attaching one session

  struct Parts {
    common::EventLoop* loop;
    Children* children;
    SessionTable* sessions;
    Jobs* jobs;
    SchedulerPort* scheduler;
    Observers* observers;
    LaneRegistry* lanes;
    SessionLifecycle* lifecycle;
    SessionLinks* links;
    Grants* grants;
    InProcess* in_process;
    const Placement* placement;
  };
  // The parts outlive this object.
  explicit Admission(const Parts& parts) : parts_(parts) {}

  // A program has said hello.
  void Create(const ipc::Hello& hello, const ipc::Peer& peer, ipc::UniqueFd socket,
              ipc::UniqueFd pidfd);
  // The worker runs the session already. `fds`: session file, pidfd, pinned memory, swap file.
  void Adopt(uint32_t worker, const ipc::control::SessionRecord& record,
             std::vector<ipc::UniqueFd>* fds);
  // lanewayd serves: sessions that came before are the scheduler's to decide about.
  void EnlistQueued();

  // The scheduler has admitted the session. A session for a worker waits to be served.
  void Begin(Session* session);
  // Starts a worker for a session that waits, or attaches the session to the worker that is ready.
  void Serve(Session* session);
  // Its worker was lost before it served. False: this has happened too often.
  bool AttachAgain(Session* session);
  // The worker has taken the session, or refuses it.
  void OnAttached(Session* session, const ipc::control::Attached& attached);

  // Looks for programs that have ended, of which the loop may not have heard yet: their places are
  // then about to come free.
  void NoticeEnding();

 private:
  ipc::JobTerms JobOf(const ipc::JobTicket& ticket);
  void Enlist(const Session& session);
  void Attach(Session* session, const Worker& worker);
  void Welcome(Session* session, const ipc::control::Attached& attached);
  void Watch(const Session& session);
  void OnSocket(uint64_t id);
  void OnProcessEnded(uint64_t id);

  const Parts parts_;
};

}  // namespace control
