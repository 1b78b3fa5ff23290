// A session's requests to lanewayd for memory, and what lanewayd is to know of its persistent
// memory.
//
// Growth asks lanewayd first and waits inside the call until there is room: others' memory is never
// a reason for an error. Without a daemon the keeper alone decides. Thread safety: one session's
// thread, but for TellBytes(), which is for any.
#pragma once

#include "ipc/calls/vendor.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "daemon/worker/assigned_lane.h"
#include "daemon/worker/call_context.h"
#include "daemon/worker/holdings.h"
#include "daemon/worker/parking.h"
#include "daemon/worker/room_request.h"
#include "daemon/worker/session_life.h"
#include "daemon/worker/session_memory.h"
#include "ipc/control.h"

namespace worker {

class MemoryRequests final : public PersistentMemory, private RoomWorld {
 public:
  // The rest of the session. All outlive this object.
  struct Surroundings {
    uint64_t session_id;
    Holdings* held;
    SessionLife* life;
    Parking* parking;
    const CallContext* call;              // the device that requests are for
    std::function<bool()> away;           // the session's memory is on the host
    std::function<void()> while_waiting;  // for lanewayd: leaves a lane that it is to leave
    std::function<void()> before_idling;  // no work comes soon
    std::function<void()> on_refusal;     // gives back what the session can do without
  };
  explicit MemoryRequests(const Surroundings& around) : around_(around) {}
  MemoryRequests(const MemoryRequests&) = delete;

  // PersistentMemory
  CUresult AskForMemory(uint64_t bytes) override { return ToCall(Take(bytes, {})); }
  CUresult MapWithRoom(uint64_t bytes, const std::function<CUresult()>& map) override;
  CUresult MapIfFree(uint64_t bytes, const std::function<CUresult()>& map) override;
  void GiveMemoryBack(uint64_t bytes) override;
  void FreeRange(CUdeviceptr address) override;
  // What another worker left of the session.
  void Inherit(uint64_t bytes) { told_bytes_.store(bytes); }

  // --- lanes
  using LaneQuestion = ipc::control::LaneNeeded;
  // The answer; empty when no daemon decides, or the session ends.
  std::optional<ipc::control::AssignLane> AskForLane(const LaneQuestion& question);
  // The session takes what the answer granted. False: a new daemon has come, and is to be asked. A
  // daemon that is told TellBytes() and then the lane's counts the grant, or is asked for it.
  bool NoteGrantedLane(AssignedLane* lane, uint64_t bytes);
  // With `ask`: as RoomPlan says. Without: attempts at what was decided before.
  GrantResult Run(const RoomPlan& plan) { return RunRoomRequest(this, plan); }

  // Memory was granted to the session, and it has not taken it yet.
  bool TakesMemory() const { return takes_ || around_.parking->HasAnswer(); }
  // Persistent memory that lanewayd knows of. A new daemon that is there before this is called
  // is asked for what is not counted here.
  uint64_t TellBytes() const {
    const base::MutexLock lock(&told_mutex_);
    return told_bytes_.load(std::memory_order_relaxed);
  }

 private:
  // RoomWorld
  bool Alive() const override { return around_.life->Alive(); }
  bool HasDaemon() const override { return DaemonNow() != 0; }
  bool PollFrees() override { return around_.held->frees.Poll(); }
  void AwaitDevice() override;
  bool AwaitOthers(uint64_t bytes) override;
  bool GaveBackSinceAsked() override;

  uint64_t DaemonNow() const;
  GrantResult Take(uint64_t bytes, std::vector<RoomPlan::Attempt> attempts);
  bool NoteTaken(uint64_t bytes);
  bool IsForANewDaemon() const REQUIRES(told_mutex_) {
    return HasDaemon() && DaemonNow() != answered_by_;
  }
  // Asks lanewayd and waits for its answer.
  template <class Answer>
  std::optional<Answer> Ask(ipc::WaitState reason, const ipc::control::WorkerToDaemon& question);

  const Surroundings around_;
  bool takes_ = false;              // it waits until what it was granted is there
  uint64_t answered_by_ = 0;        // the daemon whose answer Ask() returned last; 0: none did
  uint64_t given_back_ = 0;         // how often lanewayd was told of less
  uint64_t given_back_then_ = 0;    // at the last question
  mutable base::Mutex told_mutex_;  // of more memory, and whether a new daemon is told of it
  std::atomic<uint64_t> told_bytes_{0};
};

}  // namespace worker
