// Programs that keep a context of their own (`laneway run --mode=in-process`): each is its own
// worker, for one session.
//
// lanewayd reaches such a program over the socket of its hello (session_link.h). Memory that the
// program has allocated by itself is counted, by the scheduler and at the keeper, and can't be
// moved. A program whose socket ends runs on without lanewayd and says hello again. Thread safety:
// one thread, the loop's.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "daemon/common/event_loop.h"
#include "daemon/control/children.h"
#include "daemon/control/grants.h"
#include "daemon/control/scheduler_port.h"
#include "daemon/control/seal.h"
#include "daemon/control/session_lifecycle.h"
#include "daemon/control/session_link.h"
#include "daemon/control/session_table.h"
#include "ipc/hello.h"

namespace control {

class InProcess : public SessionLink {
 public:
  struct Parts {
    common::EventLoop* loop;
    Children* children;
    SessionTable* sessions;
    SchedulerPort* scheduler;
    SessionLifecycle* lifecycle;
    Grants* grants;
    const Seal* seal;
  };
  // The parts outlive this object. `now_us`: a monotonic clock.
  InProcess(const Parts& parts, std::function<int64_t()> now_us);

  // --- SessionLink
  // Also removes what an earlier session of this process left: its socket has ended.
  uint64_t EarlierSession(pid_t pid, const ipc::Hello& hello) override;
  void Begin(Session* session) override;
  // A program gets only messages that exist in its direction.
  void Send(const Session& session, const ipc::control::DaemonToWorker& message) override;
  bool Receive(Session* session) override;
  // A program counts devices as it sees them.
  uint32_t DeviceMeant(const Session& session, uint32_t device) const override;
  // The keeper knows a program's memory only by lanewayd's word.
  void OnMemoryCounted(const Session& session) override;
  // The program says so itself.
  const ipc::Progress& ProgressOf(const Session& session) const override {
    return session.page->progress;
  }
  bool CanMakeRoom() const override { return false; }
  bool KeepsOwnContext() const override { return true; }

  // Takes a session in that has run without lanewayd for a while: it is not queued.
  void Adopt(uint64_t id);
  // Another keeper serves: it knows none of the memory that programs have of their own.
  void OnKeeperReplaced();

 private:
  bool Welcome(const Session& session);
  void SendOwn(const Session& session, const ipc::control::DaemonToProgram& message);
  uint64_t BelievedBytes(const Session& session) const;
  void OnMessage(const Session& session, const ipc::control::ProgramToDaemon& message);
  void OnAway(Session* session);
  void AnswerMemory(uint64_t id, uint32_t device);

  const Parts parts_;
  const std::function<int64_t()> now_us_;
};

}  // namespace control
