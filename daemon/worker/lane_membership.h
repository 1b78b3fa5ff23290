// A session's part of a lane: asks lanewayd for a part, changes lanes when lanewayd says so, enters
// the lane and leaves it. The lane table says whether the session is inside; AssignedLane, which
// lane lanewayd last told.
//
// Everything here changes mappings, so nothing of the session may be on the device meanwhile:
// callers say so where it is not waited for. Thread safety: Told() and bytes() from any thread;
// Exit() also from a driver's callback while the session's thread leaves the lane alone (HandOver);
// the rest on the session's thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstdint>
#include <functional>

#include "daemon/worker/assigned_lane.h"
#include "daemon/worker/call_context.h"
#include "daemon/worker/holdings.h"
#include "daemon/worker/memory_requests.h"
#include "daemon/worker/session_life.h"
#include "daemon/worker/session_memory.h"

namespace worker {

class LaneMembership final : public LaneUse {
 public:
  // The rest of the session. All outlive this object.
  struct Surroundings {
    uint64_t session_id;
    Holdings* held;
    const CallContext* call;  // the device that requests are for
    SessionLife* life;
    MemoryRequests* requests;
    std::function<bool(uint64_t lane)> is_granted;  // the session's gate is open for this lane
    std::function<bool()> is_quiet;                 // nothing of the session is on the device
  };
  explicit LaneMembership(const Surroundings& around)
      : around_(around),
        lanes_(*around.held->arena.lanes()),
        member_(*around.held->arena.lane_member()) {}
  LaneMembership(const LaneMembership&) = delete;

  // LaneUse
  bool UsesLane() const override { return lane_.uses(); }
  CUresult GrowInLane(uint64_t bytes) override;
  CUresult GiveLaneBack() override;

  uint64_t bytes() const { return lane_.bytes(); }
  uint64_t TellBytes() const { return lane_.TellBytes(); }  // to a new lanewayd
  bool is_inside() const { return lanes_.Inside(&member_); }
  // An open gate alone does not say so: the session may have been on the host since it was inside.
  bool has_lane() const { return !lane_.uses() || is_inside(); }
  // Blocks that outlive their iteration, and could not be taken out of the lane, keep it.
  bool is_pinned() const { return lanes_.Pinned(&member_); }
  // The session has memory of the lane for no block any more, or is to leave the lane altogether.
  bool has_spare() const { return member_.has_spare() || lane_.follows_late(); }

  // --- lanewayd's decisions
  void Told(uint64_t lane) { lane_.Told(lane); }
  // Follows an earlier Told(). `away`: the session's memory is on the host, and the lane waits for
  // its return. `occupied`: an iteration's memory lies in the lane that the session would leave;
  // Reclaim() leaves that lane. REQUIRES: quiet.
  void FollowTold(uint64_t lane, bool away, bool occupied = false);

  // --- in and out
  // Enters the lane that the session's gate is open for, after asking for one where it lacks any.
  // Success without has_lane(): the session before has yet to leave it. An error: the driver does
  // not map the lane.
  CUresult EnterForTurn();
  // Enters whatever the gate says.
  CUresult Enter();
  void Exit();
  // Out of the lane, and no longer its member.
  void Leave();
  // Gives up the spare memory, and the lane when lanewayd has told of another one. REQUIRES: a
  // boundary, and quiet.
  void Reclaim();

  // --- to the host and back
  // The session's memory is on the host, so the session is in no lane.
  void OnHost() { lane_.Gone(); }
  // Joins the lane that lanewayd has told meanwhile. REQUIRES: quiet.
  void JoinForReturn();

 private:
  CUresult EnterGranted();
  CUresult Change(uint64_t lane);
  CUresult JoinTold(uint64_t wanted);
  uint64_t Lacks(uint64_t wanted) const;
  // False: the session ends before its device work does, so its mappings must stay as they are.
  [[nodiscard]] bool WaitUntilQuiet() const;

  const Surroundings around_;
  LaneTable& lanes_;
  LaneMember& member_;
  AssignedLane lane_;
};

}  // namespace worker
