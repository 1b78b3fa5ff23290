// The way from lanewayd to a session, and all in which the two kinds of sessions differ.
// A worker's session is reached through its worker (worker_link.h). A program that keeps a context
// of its own is reached over the socket of its hello (in_process.h).
//
// Thread safety: one thread, the loop's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "daemon/control/session_table.h"
#include "ipc/control.h"
#include "ipc/hello.h"

namespace control {

class SessionLink {
 public:
  virtual ~SessionLink() = default;

  // --- its begin
  // The number under which a program goes on that was a session before; 0: it is a new session.
  virtual uint64_t EarlierSession(pid_t, const ipc::Hello&) { return 0; }
  // The scheduler has admitted the session.
  virtual void Begin(Session* session) = 0;

  // --- messages
  // Sends what lanewayd tells a running session; nothing while it does not run. A message that the
  // receiver does not get because it is ending is not missed.
  virtual void Send(const Session& session, const ipc::control::DaemonToWorker& message) = 0;
  // Handles a message from the socket of a running session's program. False: such a program sends
  // nothing after its hello.
  virtual bool Receive(Session*) { return false; }
  // The device that a report of the session means by this number.
  virtual uint32_t DeviceMeant(const Session&, uint32_t device) const { return device; }
  // The memory that the scheduler counts for the session has changed.
  virtual void OnMemoryCounted(const Session&) {}

  // --- what it has and can do
  // How far the session is. REQUIRES: it has a page.
  virtual const ipc::Progress& ProgressOf(const Session& session) const = 0;
  // False: the session has no lane, and its memory never leaves the device for a session that needs
  // it more.
  virtual bool CanMakeRoom() const = 0;
  // The context is the program's own: no other worker can take the session over.
  virtual bool KeepsOwnContext() const = 0;
};

}  // namespace control
