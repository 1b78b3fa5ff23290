// Sessions and children for unit tests of lanewayd's parts: records, and no process behind them.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/control/children.h"
#include "daemon/control/scheduler_port.h"
#include "daemon/control/session_link.h"
#include "daemon/control/session_table.h"
#include "ipc/session_file.h"

namespace control {

// Workers and a keeper that do nothing but keep what they are told.
class FakeChildren : public Children {
 public:
  FakeChildren() {
    keeper_.running = keeper_.ready = true;
    keeper_.description.device_count = 1;
    keeper_.description.devices[0].capacity_bytes = uint64_t{1} << 30;
  }

  void AddWorker(uint32_t number, bool ready = true, bool own = false) {
    Worker& worker = workers_[number];
    worker.number = number;
    worker.state = ready ? WorkerState::kReady : WorkerState::kStarting;
    worker.served = ready;
    worker.own = own;
    worker.process.connection = ipc::UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC));
  }
  void AddUsage(const ipc::control::Usage& usage) { keeper_.usages.push_back(usage); }
  void RemoveWorker(uint32_t number) { workers_.erase(number); }

  // The messages of type `M` to a worker since the last call of Forget().
  template <class M>
  std::vector<M> SentTo(uint32_t worker) const {
    std::vector<M> messages;
    for (const std::pair<uint32_t, ipc::control::DaemonToWorker>& one : sent_) {
      const M* const message = std::get_if<M>(&one.second);
      if (one.first == worker && message != nullptr) messages.push_back(*message);
    }
    return messages;
  }
  // Whether the worker was sent a message of type `First` before any of type `Second`.
  template <class First, class Second>
  bool SentInOrder(uint32_t worker) const {
    for (const std::pair<uint32_t, ipc::control::DaemonToWorker>& one : sent_) {
      if (one.first != worker) continue;
      if (std::holds_alternative<Second>(one.second)) return false;
      if (std::holds_alternative<First>(one.second)) return true;
    }
    return false;
  }
  template <class M>
  std::vector<M> ToldKeeper() const {
    std::vector<M> messages;
    for (const ipc::control::ToKeeper& one : told_) {
      if (const M* const message = std::get_if<M>(&one)) messages.push_back(*message);
    }
    return messages;
  }
  void FailStarts(const std::string& sentence) { start_failure_ = sentence; }
  void Forget() {
    sent_.clear();
    told_.clear();
  }
  bool stopped() const { return stopped_; }
  const std::vector<uint32_t>& killed() const { return killed_; }
  ChildrenListener* listener() const { return listener_; }

  // --- Children
  void Start(ChildrenListener* listener) override { listener_ = listener; }
  void Stop() override { stopped_ = true; }
  absl::Status EnsureWorker() override {
    return HasWorker() ? absl::OkStatus() : StartWorker(false).status();
  }
  absl::StatusOr<uint32_t> StartWorker(bool own) override {
    if (!start_failure_.empty()) return absl::UnavailableError(start_failure_);
    AddWorker(next_worker_, false, own);
    return next_worker_++;
  }
  void Transition(uint32_t worker, WorkerState to) override {
    if (workers_.count(worker) != 0) workers_[worker].Transition(to);
  }
  void KillWorker(uint32_t worker) override { killed_.push_back(worker); }
  absl::Status Send(uint32_t worker, const ipc::control::DaemonToWorker& message,
                    std::span<const int> fds = {}) override {
    if (workers_.count(worker) == 0) return absl::UnavailableError("the worker is gone");
    sent_.emplace_back(worker, message);
    return absl::OkStatus();
  }
  const std::map<uint32_t, Worker>& workers() const override { return workers_; }
  bool TellKeeper(const ipc::control::ToKeeper& message) override {
    told_.push_back(message);
    return true;
  }
  void RefreshUsage(std::function<void()> done) override { done(); }
  const KeeperState& keeper() const override { return keeper_; }

 private:
  KeeperState keeper_;
  std::map<uint32_t, Worker> workers_;
  uint32_t next_worker_ = 100;
  std::string start_failure_;  // of each worker that is to start; empty: workers start
  std::vector<std::pair<uint32_t, ipc::control::DaemonToWorker>> sent_;
  std::vector<ipc::control::ToKeeper> told_;
  std::vector<uint32_t> killed_;
  ChildrenListener* listener_ = nullptr;
  bool stopped_ = false;
};

// Performs nothing of what the scheduler decides.
class NoExecutor : public ActionExecutor {
 public:
  void BeforeEvent() override {}
  void BeforeTimer() override {}
  void Execute(const scheduler::Action&) override {}
};

// A way to sessions that keeps which sessions were sent something.
class FakeLink : public SessionLink {
 public:
  explicit FakeLink(bool own_context = false) : own_context_(own_context) {}
  void Begin(Session*) override {}
  void Send(const Session& session, const ipc::control::DaemonToWorker&) override {
    sent_to.push_back(session.record.session_id);
  }
  const ipc::Progress& ProgressOf(const Session& session) const override {
    return *session.progress.get();
  }
  bool CanMakeRoom() const override { return !own_context_; }
  bool KeepsOwnContext() const override { return own_context_; }

  std::vector<uint64_t> sent_to;

 private:
  const bool own_context_;
};

// For sessions that are sent nothing that a test looks at.
inline FakeLink* AnyLink() {
  static FakeLink* const link = new FakeLink;
  return link;
}

inline scheduler::Limits FewSessions() {
  scheduler::Limits limits;
  limits.sessions_max = 4;
  limits.lanes_max = 1;
  return limits;
}

// A running session of worker 1. Its page is that of a fresh session file.
inline Session* AddRunning(SessionTable* sessions, uint64_t id, uint64_t lane = 0,
                           uint32_t worker = 1, SessionLink* link = AnyLink()) {
  ipc::control::SessionRecord record;
  record.session_id = id;
  record.job.number = 10 * id;
  ipc::control::SetText(record.program, "program");
  Session* const session = sessions->Add(record, link);
  session->fds.file = ipc::UniqueFd(*ipc::SessionFile::Create(id, 0));
  session->page = common::SessionPageMap(session->fds.file.get());
  session->phase = Phase::kRunning;
  session->worker = worker;
  session->lane = lane;
  return session;
}

}  // namespace control
