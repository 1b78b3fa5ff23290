// The keeper and the workers of a simulated lanewayd: what daemon/control/child_processes.cc makes
// of processes and sockets, over the queues of a world. Thread safety: one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/control/children.h"
#include "tests/protocol/sim_memory.h"
#include "tests/protocol/sim_worker.h"

namespace protocol {

class SimChildren : public control::Children {
 public:
  // Starts a process and returns its connection; says its number.
  using StartProcess = std::function<std::shared_ptr<Connection>(bool own, uint32_t* number)>;
  // Scene and keeper outlive this object.
  SimChildren(Scene* scene, SimKeeper* keeper, StartProcess start,
              std::function<void(uint32_t)> kill);
  ~SimChildren() override;  // lanewayd's process ends

  // A worker of an earlier lanewayd. Before Start().
  void Adopt(uint32_t number, std::shared_ptr<Connection> connection);
  // A message of a child that chance chooses, or its end. False: there is none.
  bool HearOne();
  void OnProcessGone(uint32_t number);  // noticed later
  void OnKeeperReplaced();

  // --- Children
  void Start(control::ChildrenListener* listener) override;
  void Stop() override {}
  absl::Status EnsureWorker() override;
  absl::StatusOr<uint32_t> StartWorker(bool own) override;
  void Transition(uint32_t worker, control::WorkerState to) override;
  void KillWorker(uint32_t worker) override { kill_(worker); }
  absl::Status Send(uint32_t worker, const ipc::control::DaemonToWorker& message,
                    std::span<const int> fds = {}) override;
  const std::map<uint32_t, control::Worker>& workers() const override { return workers_; }
  bool TellKeeper(const ipc::control::ToKeeper& message) override;
  void RefreshUsage(std::function<void()> done) override;
  const control::KeeperState& keeper() const override { return keeper_; }

 private:
  enum class Adoption { kListing, kCounting, kDone };  // as that of ChildProcesses

  bool HearKeeper();
  bool HearWorker(uint32_t number);
  void Add(uint32_t number, std::shared_ptr<Connection> connection, bool listing);
  void Handle(control::Worker* worker, const ipc::control::WorkerToDaemon& message);
  void EndListing(control::Worker* worker);
  void OnWorkerEnded(uint32_t number);
  void CheckAdopted();
  void ReadUsages();

  Scene* const scene_;
  SimKeeper& keeper_process_;
  const StartProcess start_;
  const std::function<void(uint32_t)> kill_;
  control::ChildrenListener* listener_ = nullptr;
  control::KeeperState keeper_;
  std::map<uint32_t, control::Worker> workers_;
  std::map<uint32_t, std::shared_ptr<Connection>> connections_;
  Adoption adoption_ = Adoption::kListing;
};

}  // namespace protocol
