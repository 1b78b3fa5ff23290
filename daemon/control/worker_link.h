// Sessions that a worker runs: from their admission by way of slot, files and worker to the
// welcome. A worker counts devices as they are, and the keeper has the memory that it uses.
//
// Thread safety: one thread, the loop's.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "daemon/control/children.h"
#include "daemon/control/grants.h"
#include "daemon/control/session_lifecycle.h"
#include "daemon/control/session_link.h"
#include "daemon/control/session_table.h"
#include "daemon/control/session_verdicts.h"

namespace control {

class WorkerLink : public SessionLink {
 public:
  static constexpr int kAttemptsMax = 3;  // of attaching one session

  struct Parts {
    Children* children;
    SessionTable* sessions;
    SessionLifecycle* lifecycle;
    Grants* grants;
    const SessionVerdicts* verdicts;
  };
  // The parts outlive this object.
  explicit WorkerLink(const Parts& parts) : parts_(parts) {}

  // --- SessionLink
  // Gives the session its slot and files. It waits for Serve() then.
  void Begin(Session* session) override;
  void Send(const Session& session, const ipc::control::DaemonToWorker& message) override;
  const ipc::Progress& ProgressOf(const Session& session) const override;
  bool CanMakeRoom() const override { return true; }
  bool KeepsOwnContext() const override { return false; }

  // --- the worker of a session
  // Makes sure that a worker for the session is ready or about to be. The error is a sentence.
  absl::Status EnsureWorker(Session* session);
  // Hands the session to its worker, with its files.
  void HandOver(const Session& session);
  // Starts a worker for a session that waits, or attaches the session to the worker that is ready.
  void Serve(Session* session);
  // Its worker was lost before it served. False: this has happened too often.
  bool AttachAgain(Session* session);
  // The worker has taken the session, or refuses it.
  void OnAttached(Session* session, const ipc::control::Attached& attached);

 private:
  void Attach(Session* session, const Worker& worker);
  void Welcome(Session* session, const ipc::control::Attached& attached);

  const Parts parts_;
};

}  // namespace control
