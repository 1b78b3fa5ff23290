// Where a session's memory is, and when the session may use it.
//
// Makes four parts in the order of their needs, connects them, and gives each decision of lanewayd
// to the part that carries it out. Thread safety: OnDecision() and Describe() from any thread; the
// rest as the parts say.
#pragma once

#include "ipc/calls/vendor.h"

#include <functional>
#include <string>

#include "daemon/worker/call_context.h"
#include "daemon/worker/holdings.h"
#include "daemon/worker/iterations.h"
#include "daemon/worker/lane_executor.h"
#include "daemon/worker/lane_membership.h"
#include "daemon/worker/memory_requests.h"
#include "daemon/worker/parking.h"
#include "daemon/worker/session.h"
#include "daemon/worker/session_life.h"
#include "daemon/worker/stream_notices.h"
#include "daemon/worker/swap_orders.h"

namespace worker {

class Residency {
 public:
  // The rest of the session. All outlive this object.
  struct Surroundings {
    uint64_t session_id;
    Holdings* held;
    SessionLife* life;
    Parking* parking;
    const CallContext* call;
    StreamNotices* notices;
    Iterations* iterations;
    ipc::SessionPage* page;
    std::function<bool()> message_waits;  // in the ring
    std::function<void()> on_refusal;     // as MemoryRequests says
  };
  explicit Residency(const Surroundings& around);
  Residency(const Residency&) = delete;

  // Maps the memory that another worker left, or notes that the memory is on the host. False:
  // `error` holds a sentence.
  bool Restore(std::string* error);
  // The session has a gate from now on. Does nothing without a board.
  void JoinBoard();
  // Carries out a decision of lanewayd as soon as the session's state allows.
  void OnDecision(const Decision& decision);
  // The memory that lanewayd counts, and its place.
  SessionSnapshot Describe() const;

  MemoryRequests requests;  // room for memory, from lanewayd
  LaneMembership lane;      // which lane and how much of it, in and out
  LaneExecutor turn;        // does what LaneTurns decides: the gate, handing the lane over
  SwapOrders swaps;         // the way to the host and back

 private:
  Arena& arena_;
  const ArrayMemory& arrays_;
  const PinnedMemory& pinned_;
  Board* const board_;  // null: every session runs at once
  Parking& parking_;
};

}  // namespace worker
