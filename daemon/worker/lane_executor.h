// Does what LaneTurns decides: keeps the session's gate, collects the facts of each event, and
// hands the lane over to the next session when the device has finished.
//
// LaneTurns (lane_turns.h) decides and does nothing; this class decides nothing. Thread safety: the
// session's thread; streams' callbacks end a hand-over on the driver's threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "daemon/worker/client_bell.h"
#include "daemon/worker/device_callbacks.h"
#include "daemon/worker/gate.h"
#include "daemon/worker/holdings.h"
#include "daemon/worker/iterations.h"
#include "daemon/worker/lane_membership.h"
#include "daemon/worker/lane_turns.h"
#include "daemon/worker/session_life.h"
#include "daemon/worker/session_memory.h"

namespace worker {

class LaneExecutor final : public DeviceTurn {
 public:
  // The rest of the session. All outlive this object.
  struct Surroundings {
    uint64_t session_id;
    Holdings* held;
    SessionLife* life;
    LaneMembership* lane;
    ClientBell* bell;
    DeviceCallbacks* callbacks;
    Iterations* iterations;
    ipc::SessionPage* page;
    std::function<bool()> message_waits;  // in the ring
  };
  explicit LaneExecutor(const Surroundings& around)
      : around_(around), stream_done_(around.callbacks, [this] { NoteStreamDone(); }) {}
  LaneExecutor(const LaneExecutor&) = delete;

  // --- the gate
  // From now on the session has a gate. `wake` rings its thread, from any thread.
  void JoinBoard(Board* board, std::function<void()> wake) {
    gate_ = std::make_unique<Gate>(board, around_.session_id, std::move(wake));
  }
  // The lane is the next session's. REQUIRES: nothing of this session lies in it.
  void LeaveBoard() { gate_.reset(); }
  // Null: there is no board, and every session runs at once.
  Gate* gate() const { return gate_.get(); }
  // lanewayd hears now of what the board has kept to itself.
  void FlushReports() {
    if (gate_ != nullptr) gate_->FlushReports();
  }
  bool IsItsTurn() const override;
  // True when the gate is open for this lane. lanewayd may have moved the session to another lane.
  // The session then enters no lane before it has joined the new lane.
  bool IsGranted(uint64_t lane) const;

  // --- facts
  // The device has nothing of the session, and its lane is not being handed over.
  bool IsQuiet();
  // Nothing that the session still needs lies in its lane.
  bool LaneIsEmpty();
  bool at_boundary() const { return turn_.at_boundary; }
  // Memory of an iteration lies in the lane that the session is inside.
  bool IsOccupied() { return around_.lane->is_inside() && !LaneIsEmpty(); }

  // --- events of the session's thread
  // A call that touches memory is about to be served.
  void OnWork();
  void OnBoundary();
  // The thread looks at its gate between two messages.
  void OnLook() { OnRevoked(LaneEvent::kLook); }
  // The thread waits for lanewayd inside a call.
  void OnWait() { OnRevoked(LaneEvent::kWait); }
  // No message came for a while.
  void OnSilence();
  // Gives up the lane's memory that the session keeps without a block in it, and the lane itself
  // when lanewayd has told of another one. Does nothing inside an iteration or while the device
  // works for the session.
  void Reclaim();
  // True when the session may leave its lane now, so that another session enters.
  bool MayLeave();
  // Says whether the session may go to the host: kMayGo, or why not. `order` holds on_host,
  // with_lane and takes_memory.
  LaneAction OnOrderedOut(LaneFacts order);

 private:
  LaneFacts Now();
  void OnRevoked(LaneEvent event);
  void Take(LaneEvent event, const LaneFacts& facts);
  void LeaveLane();
  void NoteStreamDone();

  const Surroundings around_;
  DeviceCallbacks::Task stream_done_;
  std::unique_ptr<Gate> gate_;
  LaneState turn_;
  HandOver hand_over_;
};

}  // namespace worker
