// The phases of a session: which may follow which, and what is done on entering each.
//
// Every change of a session's phase goes through Transition(), and every end through Remove(). So
// the end, the loss and the departure of a session are each defined once:
//
//     queued -> waiting -> attaching -> running -> ending -> (removed)
//     running -> moving -> entering -> running       between two workers (docs/recovery.md)
//     running, moving, entering -> lost -> (removed)   its worker is gone, its program runs on
//
// Thread safety: one thread, the loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "daemon/common/event_loop.h"
#include "daemon/control/lane_registry.h"
#include "daemon/control/observers.h"
#include "daemon/control/scheduler_port.h"
#include "daemon/control/session_table.h"

namespace control {

// True when a session in phase `from` may enter phase `to`. Any phase may be the last one.
bool IsLegal(Phase from, Phase to);

class SessionLifecycle {
 public:
  struct Parts {
    common::EventLoop* loop;
    SessionTable* sessions;
    SchedulerPort* scheduler;
    Observers* observers;
    LaneRegistry* lanes;
  };
  struct Settings {
    std::string runtime_dir;
    int64_t kill_timeout_us = 0;  // from kEnding on; 0: a session may take any time to end
  };
  class Listener {
   public:
    virtual ~Listener() = default;
    // The session has been ending for longer than the timeout.
    virtual void OnOverdue(uint64_t session) = 0;
  };

  // Parts and listener outlive this object.
  SessionLifecycle(const Parts& parts, Settings settings, Listener* listener);

  // REQUIRES: IsLegal(session->phase, to). May apply events, and so remove other sessions.
  void Transition(Session* session, Phase to);
  // The session's place, memory and lane are free. It exists no more afterwards.
  void Remove(Session* session);
  // Tells the session's program that it gets no session, and why; then as Remove().
  void Refuse(Session* session, unsigned code, const std::string& sentence);
  // The session's program sends no more, and is sent no more.
  void CloseSocket(Session* session);

 private:
  void BeginMoving(Session* session);
  void BeginEnding(const Session& session);
  void BeginLost(Session* session);

  const Parts parts_;
  const Settings settings_;
  Listener* const listener_;
};

}  // namespace control
