// Session, implemented: makes the session's parts and connects them.
//
//   SessionLoop        takes messages, has them served, replies
//   TurnWait           waits for a message, the gate and the lane
//   LaneExecutor       does what LaneTurns decides: the gate, handing the lane over
//   LaneMembership     which lane and how much of it, in and out
//   SwapOrders         the way to the host and back
//   MemoryRequests     room for memory, from lanewayd
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

#include "daemon/worker/call_handlers/call_handlers.h"
#include "daemon/worker/holdings.h"
#include "daemon/worker/iterations.h"
#include "daemon/worker/lane_executor.h"
#include "daemon/worker/lane_membership.h"
#include "daemon/worker/memory_requests.h"
#include "daemon/worker/parking.h"
#include "daemon/worker/session.h"
#include "daemon/worker/session_handover.h"
#include "daemon/worker/session_life.h"
#include "daemon/worker/session_loop.h"
#include "daemon/worker/session_pages.h"
#include "daemon/worker/session_teardown.h"
#include "daemon/worker/stream_notices.h"
#include "daemon/worker/swap_orders.h"
#include "daemon/worker/turn_wait.h"

namespace worker {

class SessionImpl final : public Session, private Quiesce {
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
  void OnDecision(const Decision& decision) override;

 private:
  // Quiesce
  bool PollFrees() override { return held_.frees.Poll(); }
  bool IsComplete() override {
    return !loop_.midway() && !handlers_.modules().HasPartOfAnImage() && turn_.LaneIsEmpty() &&
           held_.StreamsComplete();
  }
  void SaveForSuccessor() override { handlers_.streams().SaveTimes(); }
  bool MayLeave() override { return turn_.MayLeave(); }

  bool Restore(std::string* error);
  // True: another worker is to go on with the session.
  bool Serve();

  SessionPages pages_;
  SessionLife life_;
  Parking parking_;
  SessionHandover handover_;
  StreamNotices notices_;
  Holdings held_;
  CallHandlers handlers_;
  MemoryRequests requests_;
  Iterations iterations_;
  LaneMembership lane_;
  LaneExecutor turn_;
  SessionTeardown teardown_;
  SwapOrders swaps_;
  TurnWait wait_;
  SessionLoop loop_;
};

}  // namespace worker
