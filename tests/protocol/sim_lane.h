// A simulated session's lane: the real gate, lane table, machine of turns and hand-over, with the
// device's work as a count. What daemon/worker/lane_executor.cc and lane_membership.cc do about a
// lane, in the same order. Thread safety: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "daemon/worker/assigned_lane.h"
#include "daemon/worker/gate.h"
#include "daemon/worker/lane_turns.h"
#include "daemon/worker/lanes.h"
#include "tests/protocol/scene.h"
#include "tests/protocol/sim_ranges.h"

namespace protocol {

class SimLane {
 public:
  // `tags`: what lies in each extent, to see whether another session wrote there.
  SimLane(Scene* scene, const worker::Environment* environment,
          const ipc::control::SessionRecord& record, Program* program,
          std::map<uint64_t, uint64_t>* tags);
  SimLane(const SimLane&) = delete;

  worker::Gate& gate() { return *gate_; }
  worker::AssignedLane& assigned() { return assigned_; }
  const worker::AssignedLane& assigned() const { return assigned_; }
  worker::LaneMember& member() { return member_; }
  uint64_t number() const { return member_.lane(); }
  bool is_inside() const { return environment_.lanes->Inside(&member_); }
  bool at_boundary() const { return turn_.at_boundary; }
  bool IsOccupied() { return is_inside() && !IsEmpty(); }
  // Whether something of it runs, or lives in the lane between two kernels.
  bool is_used() const;
  // Nothing of the session is on the device.
  bool is_still() const { return in_flight_ == 0 && !hand_over_.under_way(); }

  // --- turns
  bool Has() const { return !assigned_.uses() || is_inside(); }
  bool IsItsTurn() const;
  void On(worker::LaneEvent event);
  bool MayLeave();
  bool IsEmpty() { return LaneIsEmpty(turn_, Now()); }
  worker::LaneAction MayGoOut(bool with_lane, bool takes_memory);

  // --- the device
  void Work(const Op& op);
  void Boundary();
  void ForgetLife() { live_tag_ = 0; }
  bool FinishDeviceWork();  // completes one kernel; false: there is none

  // --- the lane's memory
  CUresult Enter();
  CUresult EnterGranted();
  void Exit();
  void Forsake();
  CUresult Change(uint64_t lane);
  void FollowTold(uint64_t lane, bool away);
  void Reclaim();  // at a boundary: leaves the lane when another one was told
  CUresult Reserve(uint64_t bytes);
  void WriteBack();  // what lived there before it went to the host
  void End(bool to_successor);
  std::string Describe() const;

 private:
  worker::LaneFacts Now();
  void Leave();
  void NoteDeviceDone();
  void CheckWork(const Op& op);
  void NoteHeld(bool boundary);

  Scene* const scene_;
  const uint64_t session_;
  const worker::Environment& environment_;
  const CUdeviceptr base_;
  Program* const program_;
  std::map<uint64_t, uint64_t>* const tags_;
  std::shared_ptr<worker::JobMemory> job_ = std::make_shared<worker::JobMemory>();
  worker::LaneMember member_;
  std::unique_ptr<worker::Gate> gate_;
  worker::AssignedLane assigned_;
  worker::LaneState turn_;
  worker::HandOver hand_over_;
  uint64_t live_tag_ = 0;      // of what lives in its lane; 0: nothing
  int in_flight_ = 0;          // kernels on the device
  int64_t held_since_us_ = 0;  // 0: no work since the last boundary
};

}  // namespace protocol
