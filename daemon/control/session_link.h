// The way from lanewayd to a session. A worker's session is reached through its worker. A program
// that keeps a context of its own (in-process mode) is reached over the socket of its hello.
//
// Thread safety: one thread, the loop's.
#pragma once

#include <cstdint>

#include "daemon/control/children.h"
#include "daemon/control/scheduler_port.h"
#include "daemon/control/session_table.h"

namespace control {

class SessionLink {
 public:
  virtual ~SessionLink() = default;
  // Sends what lanewayd tells a running session; nothing while it does not run. A message that the
  // receiver does not get because it is ending is not missed.
  virtual void Send(const Session& session, const ipc::control::DaemonToWorker& message) = 0;
  // The device that a report of the session means by this number.
  virtual uint32_t DeviceMeant(const Session& session, uint32_t device) const = 0;
  // The memory that the scheduler counts for the session has changed.
  virtual void OnMemoryCounted(const Session& session) = 0;
};

// The worker counts devices as they are, and the keeper has the memory that it uses.
class WorkerLink : public SessionLink {
 public:
  explicit WorkerLink(Children* children) : children_(children) {}
  // Makes sure that a worker for the session is ready or about to be. The error is a sentence.
  absl::Status EnsureWorker(Session* session);
  // Hands the session to its worker, with its files.
  void Attach(const Session& session);
  void Send(const Session& session, const ipc::control::DaemonToWorker& message) override;
  uint32_t DeviceMeant(const Session&, uint32_t device) const override { return device; }
  void OnMemoryCounted(const Session&) override {}

 private:
  Children* const children_;
};

// A program hears only messages that exist in its direction, counts devices as it sees them, and
// has memory that the keeper knows only by what lanewayd tells.
class ProgramLink : public SessionLink {
 public:
  ProgramLink(Children* children, const SchedulerPort* scheduler)
      : children_(children), scheduler_(scheduler) {}
  void Send(const Session& session, const ipc::control::DaemonToWorker& message) override;
  void SendOwn(const Session& session, const ipc::control::DaemonToProgram& message);
  uint32_t DeviceMeant(const Session& session, uint32_t device) const override;
  void OnMemoryCounted(const Session& session) override;

 private:
  Children* const children_;
  const SchedulerPort* const scheduler_;
};

// Picks the link of a session.
class SessionLinks {
 public:
  SessionLinks(Children* children, const SchedulerPort* scheduler)
      : worker_(children), program_(children, scheduler) {}
  SessionLink& Of(const Session& session) {
    return session.in_process ? static_cast<SessionLink&>(program_) : worker_;
  }
  WorkerLink& worker() { return worker_; }
  ProgramLink& program() { return program_; }

 private:
  WorkerLink worker_;
  ProgramLink program_;
};

}  // namespace control
