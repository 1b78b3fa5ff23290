// The keeper and the workers of one daemon: starts, adopts, watches and stops them.
//
// A new daemon first looks who is there (keeper.sock, worker-N.sock) and asks what they hold; only
// then are programs served. A lost keeper is replaced at once and the workers hand their extents
// over; a lost worker is replaced when a session needs one, and its memory is released only after
// its pidfd says that it is gone. Thread safety: one thread, the loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "daemon/common/event_loop.h"
#include "daemon/control/process.h"
#include "ipc/control.h"
#include "ipc/unique_fd.h"

namespace control {

struct ChildrenOptions {
  std::string runtime_dir;
  std::string device;
  int64_t linger_s = 60;
  std::string scrub = "tenants";
  int64_t swap_bytes = -1;  // -1: common::DefaultSwapBytes()
};

// The messages of a worker about its sessions and lanes; the others are about its process.
using WorkerReport =
    std::variant<ipc::control::SessionRecord, ipc::control::Attached, ipc::control::SessionEnded,
                 ipc::control::SessionReleased, ipc::control::Poisoned, ipc::control::Switched,
                 ipc::control::GateReport, ipc::control::LaneNeeded, ipc::control::LaneShrunk,
                 ipc::control::LaneChanged, ipc::control::MemoryNeeded, ipc::control::MemoryFreed,
                 ipc::control::Swapped>;

// What happens to children; called on the loop.
class ChildrenListener {
 public:
  virtual ~ChildrenListener() = default;
  // Once: the keeper serves, and all that an earlier daemon left is adopted.
  virtual void OnChildrenReady() = 0;
  virtual void OnWorkerReady(uint32_t worker) = 0;
  // `fds`: the descriptors of the report.
  virtual void OnWorkerReport(uint32_t worker, const WorkerReport& report,
                              std::vector<ipc::UniqueFd>* fds) = 0;
  // Its process has ended. `was_ready` false: it never served; `sentence` says why.
  virtual void OnWorkerLost(uint32_t worker, bool was_ready, const std::string& sentence) = 0;
  // Another keeper serves: it knows only what workers have handed to it.
  virtual void OnKeeperReplaced() = 0;
  // The keeper ended before it served; it is not started again by itself.
  virtual void OnKeeperFailed(const std::string& sentence) = 0;
  virtual void OnAllStopped() = 0;
};

struct Worker {
  Process process;
  uint32_t number = 0;
  bool ready = false;
  bool listing = false;  // adopted, and still telling what it holds
  bool own = false;      // of one session that shares it with nobody
  bool leaving = false;  // takes no more sessions
  std::string failure;   // what it said before it ended
};

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
  Children(ChildrenOptions options, common::EventLoop* loop, ChildrenListener* listener);

  void Start();
  // Makes sure that a worker for everyone is ready or about to be.
  absl::Status EnsureWorker();
  // Whether one is.
  bool HasWorker() const;
  // Starts another one; `own`: for one session alone. Its number; 0 while there is no keeper, which
  // starts none.
  absl::StatusOr<uint32_t> StartWorker(bool own);
  // While it leaves it takes no more sessions: EnsureWorker() and Current() look for others.
  void SetLeaving(uint32_t worker, bool leaving);
  // Null when there is none, or it is not ready.
  const Worker* Ready(uint32_t worker) const;
  void KillWorker(uint32_t worker);
  // The worker that takes new sessions; null while none is ready.
  const Worker* Current() const;
  absl::Status Send(uint32_t worker, const ipc::control::DaemonToWorker& message,
                    std::span<const int> fds = {});

  // ReleaseOwner: a session or lane has ended, its device memory is freed once no living worker has
  // it. CountOutside: what a program of its own context has.
  bool TellKeeper(const ipc::control::ToKeeper& message);  // false: the keeper is gone
  // Brings keeper().usages up to date, then calls back; at once when there is no keeper.
  void RefreshUsage(std::function<void()> done);
  // Asks all to end, kills who does not, then OnAllStopped().
  void Stop();

  const KeeperState& keeper() const { return keeper_; }
  const std::map<uint32_t, Worker>& workers() const { return workers_; }

 private:
  void AdoptKeeper(Process process);
  void StartKeeper();
  void WatchKeeper();
  void OnKeeperReadable();
  void OnKeeperEnded();
  void OnKeeperReady(const ipc::control::KeeperReady& ready);
  void OnKeeperListEnd();

  void AdoptWorkers();
  void AddWorker(uint32_t number, Process process, bool listing);
  bool OnWorkerReadable(uint32_t number);  // false: nothing more to read
  void HandleWorker(Worker* worker, ipc::control::Received<ipc::control::WorkerToDaemon>* received);
  void NoteReady(Worker* worker, const ipc::control::WorkerReady& ready);
  void EndListing(Worker* worker);
  void OnWorkerEnded(uint32_t number);

  void CheckAdopted();
  void FinishStop();
  std::vector<std::string> ArgumentsFor(const std::string& device) const;

  const ChildrenOptions options_;
  common::EventLoop* const loop_;
  ChildrenListener* const listener_;
  KeeperState keeper_;
  std::map<uint32_t, Worker> workers_;
  uint32_t next_worker_ = 1;
  bool adopted_ = false;
  bool stopping_ = false;
  bool worker_wanted_ = false;
  int64_t keeper_delay_us_ = 0;
  std::vector<std::function<void()>> usage_waiters_;
  common::EventLoop::TimerId usage_timer_ = 0;
};

}  // namespace control
