// The keeper and the workers of lanewayd, as its other parts see them.
//
// child_processes.h implements this with processes; unit tests do with records. Thread safety: one
// thread, the loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/control/process.h"
#include "daemon/control/worker_state.h"
#include "ipc/control.h"
#include "ipc/unique_fd.h"

namespace control {

// The messages of a worker about its sessions and lanes. Its other messages are about its process.
using WorkerReport =
    std::variant<ipc::control::SessionRecord, ipc::control::Attached, ipc::control::SessionEnded,
                 ipc::control::SessionReleased, ipc::control::Poisoned, ipc::control::Switched,
                 ipc::control::GateReport, ipc::control::LaneNeeded, ipc::control::LaneShrunk,
                 ipc::control::LaneChanged, ipc::control::MemoryNeeded, ipc::control::MemoryIfFree,
                 ipc::control::MemoryFreed, ipc::control::Swapped>;

// The end of a worker's process.
struct WorkerLoss {
  bool served = true;     // false: it never was ready
  bool expected = false;  // it was retired
  std::string sentence;   // why it ended, for people
};

// Events of children; called on the loop.
class ChildrenListener {
 public:
  virtual ~ChildrenListener() = default;
  // Once: the keeper serves, and all that an earlier daemon left is adopted.
  virtual void OnChildrenReady() = 0;
  virtual void OnWorkerReady(uint32_t worker) = 0;
  // `fds`: the descriptors of the report.
  virtual void OnWorkerReport(uint32_t worker, const WorkerReport& report,
                              std::vector<ipc::UniqueFd>* fds) = 0;
  virtual void OnWorkerLost(uint32_t worker, const WorkerLoss& loss) = 0;
  // Another keeper serves. It knows only the memory that workers have handed to it.
  virtual void OnKeeperReplaced() = 0;
  // The keeper ended before it served; it is not started again by itself.
  virtual void OnKeeperFailed(const std::string& sentence) = 0;
  virtual void OnAllStopped() = 0;
};

struct Worker {
  Process process;
  uint32_t number = 0;
  WorkerState state = WorkerState::kStarting;
  bool served = false;  // it has said that it is ready, whichever state came after
  bool own = false;     // of one session alone
  std::string failure;  // its last sentence before it ended

  // True when new sessions may wait for it or go to it.
  bool TakesSessions() const {
    return state != WorkerState::kLeaving && state != WorkerState::kRetired;
  }
  // REQUIRES: IsLegal(state, to).
  void Transition(WorkerState to);
};

// Of a worker that has ended; the sentence may be empty. An adopted worker has served an earlier
// lanewayd, which may have told the worker to stop: its end is no failed start.
WorkerLoss LossOf(const Worker& worker);

struct KeeperState {
  Process process;
  bool running = false;
  bool ready = false;
  bool listing = false;
  std::string failure;
  ipc::control::KeeperReady description;
  std::vector<ipc::control::Usage> usages;  // as of the last Query
};

class Children {
 public:
  virtual ~Children() = default;

  // Calls `listener`, which outlives this object, from now on.
  virtual void Start(ChildrenListener* listener) = 0;
  // Asks the keeper and all workers to end, kills them after a while, then calls OnAllStopped().
  virtual void Stop() = 0;

  // --- workers
  // Makes sure that a worker that takes any session is ready or about to be.
  virtual absl::Status EnsureWorker() = 0;
  // Starts another worker; `own`: for one session alone. Returns its number; 0 while there is no
  // keeper, without which none is started.
  virtual absl::StatusOr<uint32_t> StartWorker(bool own) = 0;
  // REQUIRES: the worker may enter the state, if it has not ended. EnsureWorker() and Current()
  // look for another worker when it takes no more sessions.
  virtual void Transition(uint32_t worker, WorkerState to) = 0;
  // The worker takes sessions again after all. REQUIRES: it is leaving, if it has not ended.
  void Stay(uint32_t worker);
  // Asks the worker to end. REQUIRES: it is not retired yet, if it has not ended.
  void Retire(uint32_t worker);
  virtual void KillWorker(uint32_t worker) = 0;
  // Fails when the worker is ending: OnWorkerLost() follows.
  virtual absl::Status Send(uint32_t worker, const ipc::control::DaemonToWorker& message,
                            std::span<const int> fds = {}) = 0;
  virtual const std::map<uint32_t, Worker>& workers() const = 0;

  // --- keeper
  // ReleaseOwner: a session or lane has ended, its device memory is freed once no living worker has
  // it. CountOutside: the memory of a program in-process. False: the keeper is gone.
  virtual bool TellKeeper(const ipc::control::ToKeeper& message) = 0;
  // Brings keeper().usages up to date, then calls back; at once when there is no keeper.
  virtual void RefreshUsage(std::function<void()> done) = 0;
  virtual const KeeperState& keeper() const = 0;

  // --- derived from workers()
  // True when a shared worker is ready or starts.
  bool HasWorker() const;
  // Null when there is none of this number, or it is not ready.
  const Worker* Ready(uint32_t worker) const;
  // The worker that takes new sessions; null while none is ready.
  const Worker* Current() const;
};

}  // namespace control
