// The keeper and the workers as processes: starts, adopts, watches and stops them.
//
// A new lanewayd first looks which processes exist (keeper.sock, worker-N.sock) and asks for their
// memory and sessions; only then are programs served. A lost keeper is replaced at once, and the
// workers hand their extents over. A lost worker is replaced when a session needs one. The memory
// of a worker is released only after its pidfd says that the process is gone. Thread safety: one
// thread, the loop's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "daemon/common/event_loop.h"
#include "daemon/control/children.h"

namespace control {

struct ChildrenOptions {
  std::string runtime_dir;
  std::string device;
  int64_t linger_s = 60;
  std::string scrub = "tenants";
  int64_t swap_bytes = -1;  // -1: common::DefaultSwapBytes()
};

class ChildProcesses : public Children {
 public:
  // `loop` outlives this object.
  ChildProcesses(ChildrenOptions options, common::EventLoop* loop);

  // --- Children
  void Start(ChildrenListener* listener) override;
  void Stop() override;
  absl::Status EnsureWorker() override;
  absl::StatusOr<uint32_t> StartWorker(bool own) override;
  void Transition(uint32_t worker, WorkerState to) override;
  void KillWorker(uint32_t worker) override;
  absl::Status Send(uint32_t worker, const ipc::control::DaemonToWorker& message,
                    std::span<const int> fds = {}) override;
  const std::map<uint32_t, Worker>& workers() const override { return workers_; }
  bool TellKeeper(const ipc::control::ToKeeper& message) override;
  void RefreshUsage(std::function<void()> done) override;
  const KeeperState& keeper() const override { return keeper_; }

 private:
  // Of that which an earlier lanewayd has left: the workers list their sessions, then the keeper
  // counts its memory.
  enum class Adoption { kListing, kCounting, kDone };

  void AdoptKeeper(Process process);
  void StartKeeper();
  void WatchKeeper();
  void OnKeeperReadable();
  void OnKeeperEnded();
  void OnKeeperReady(const ipc::control::KeeperReady& ready);
  void OnKeeperListEnd();

  void AdoptWorkers();
  Worker* AddWorker(uint32_t number, Process process, WorkerState state);
  bool OnWorkerReadable(uint32_t number);  // false: nothing more to read
  void HandleWorker(Worker* worker, ipc::control::Received<ipc::control::WorkerToDaemon>* received);
  void NoteReady(Worker* worker, const ipc::control::WorkerReady& ready);
  void EndListing(Worker* worker);
  void OnWorkerEnded(uint32_t number);

  void CheckAdopted();
  void FinishAdoption();
  void FinishStop();
  std::vector<std::string> ArgumentsFor(const std::string& device) const;

  const ChildrenOptions options_;
  common::EventLoop* const loop_;
  ChildrenListener* listener_ = nullptr;  // from Start() on
  KeeperState keeper_;
  std::map<uint32_t, Worker> workers_;
  uint32_t next_worker_ = 1;
  Adoption adoption_ = Adoption::kListing;
  bool stopping_ = false;
  bool worker_wanted_ = false;
  int64_t keeper_delay_us_ = 0;
  std::vector<std::function<void()>> usage_waiters_;
  common::EventLoop::TimerId usage_timer_ = 0;
};

}  // namespace control
