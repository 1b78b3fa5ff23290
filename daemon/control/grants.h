// Lanes, memory and turns: carries the scheduler's decisions to workers and programs, and their
// reports to the scheduler.
//
// No message is sent per iteration: how far a session is stands in its page, and is read when
// something happens. Thread safety: one thread, the loop's.
#pragma once

#include <cstdint>
#include <functional>

#include "daemon/control/children.h"
#include "daemon/control/lane_registry.h"
#include "daemon/control/observers.h"
#include "daemon/control/scheduler_port.h"
#include "daemon/control/session_lifecycle.h"
#include "daemon/control/session_link.h"
#include "daemon/control/session_table.h"

namespace control {

class Grants {
 public:
  struct Parts {
    SessionTable* sessions;
    const Children* children;
    SchedulerPort* scheduler;
    Observers* observers;
    LaneRegistry* lanes;
    SessionLifecycle* lifecycle;
  };
  // The parts outlive this object. `iteration_max_s`: a session that stays longer in an iteration
  // after it was to leave is ended; 0: it is only reported. `now_us`: a monotonic clock.
  Grants(const Parts& parts, int64_t iteration_max_s, std::function<int64_t()> now_us);

  // --- sessions
  // All that the scheduler is told of a session that arrives.
  scheduler::SessionArrived Describe(const Session& session) const;
  // The session runs already, with the memory and lane of its record.
  void Adopt(const Session& session);
  // Tells the session in which lane it is.
  void TellLane(const Session& session);
  // All adopted sessions are told of their lanes. REQUIRES: lanewayd serves.
  void TellAdoptedLanes();
  // Applies the progress that stands in the session's page since the last time.
  void NoteProgress(uint64_t id);
  // The session has left its worker. It has no work and no lane until another worker has it.
  void OnReleased(const Session& session);
  // The worker's sessions run nowhere until another worker takes them over.
  void OnWorkerLost(uint32_t worker);

  // --- reports
  // `worker`: of the session that had the lane; 0: its program is its own worker. A worker that the
  // session has left answers a late grant this way, too.
  void OnReport(uint32_t worker, const ipc::control::Switched& switched);
  void OnReport(const ipc::control::GateReport& report);
  void OnReport(const ipc::control::MemoryNeeded& needed);
  void OnReport(const ipc::control::MemoryIfFree& wanted);
  void OnReport(const ipc::control::MemoryFreed& freed);
  void OnReport(const ipc::control::LaneNeeded& needed);
  void OnReport(const ipc::control::Swapped& swapped);

  // --- actions
  void Execute(const scheduler::AssignLane& assign);
  void Execute(const scheduler::ResizeLane& resize) { parts_.lanes->Resize(resize); }
  void Execute(const scheduler::Grant& grant);
  void Execute(const scheduler::Revoke& revoke);
  void Execute(const scheduler::Successors& next) { parts_.lanes->Publish(next); }
  void Execute(const scheduler::GrantMemory& memory);
  void Execute(const scheduler::RefuseMemory& refusal);
  void Execute(const scheduler::SwapOut& out) { Swap({out.session, 1, out.with_lane}); }
  void Execute(const scheduler::SwapIn& in) { Swap({in.session, 0, in.with_lane}); }
  void Execute(const scheduler::Wait& wait);
  void Execute(const scheduler::Report& report);

 private:
  void Send(const Session& session, const ipc::control::DaemonToWorker& message) {
    session.link->Send(session, message);
  }
  bool IsYetToBeListed(uint64_t id) const;
  void Swap(const ipc::control::Swap& swap);
  // The session asks for memory on this device. False: the request can't be met there.
  bool NoteDevice(uint64_t id, uint32_t device, bool for_lane);

  const Parts parts_;
  const int64_t iteration_max_s_;
  const std::function<int64_t()> now_us_;
};

}  // namespace control
