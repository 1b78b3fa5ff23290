// Session, implemented: makes the session's parts and connects them.
//
//   SessionLoop        takes messages, has them served, replies
//   TurnWait           waits for a message, the gate and the lane
//   Residency          where the session's memory is, and when the session may use it
//   SessionHandover    quiet points, to and from other workers
//   SessionTeardown    the order in which all of it goes
//   CallHandlers       a handler for each part of the call table
//   Parking            commands and answers of other threads
//
// The parts reach each other only through the pointers that their constructors get. Thread safety:
// as Session says. Driver callbacks reach DeviceCallbacks::Tasks alone.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "daemon/worker/call_context.h"
#include "daemon/worker/call_handlers/call_handlers.h"
#include "daemon/worker/holdings.h"
#include "daemon/worker/iterations.h"
#include "daemon/worker/parking.h"
#include "daemon/worker/quiet_session.h"
#include "daemon/worker/residency.h"
#include "daemon/worker/session.h"
#include "daemon/worker/session_handover.h"
#include "daemon/worker/session_life.h"
#include "daemon/worker/session_loop.h"
#include "daemon/worker/session_pages.h"
#include "daemon/worker/session_teardown.h"
#include "daemon/worker/stream_notices.h"
#include "daemon/worker/turn_wait.h"

namespace worker {

class SessionImpl final : public Session {
 public:
  SessionImpl(SessionSetup setup, const Environment& environment);
  bool Reserve(std::string* error);
  SessionLife& life() { return life_; }
  CallHandlers& handlers() { return handlers_; }

  // worker::Session
  void Run() override;
  void Stop() override;
  void Release() override { handover_.Release(); }
  bool released() const override { return handover_.released(); }
  bool quiet() const override { return handover_.quiet(); }
  SessionSnapshot Snapshot() const override;
  void Post(std::function<void()> command) override { parking_.Post(std::move(command)); }
  void OnDecision(const Decision& decision) override { memory_.OnDecision(decision); }

 private:
  SessionPages pages_;
  SessionLife life_;
  Parking parking_;
  QuietSession quiesce_;
  SessionHandover handover_;
  StreamNotices notices_;
  Holdings held_;
  CallContext call_;
  Iterations iterations_;
  Residency memory_;
  CallHandlers handlers_;
  SessionTeardown teardown_;
  TurnWait wait_;
  SessionLoop loop_;
};

}  // namespace worker
