// lanewayd: lets programs in, gives each a slot, a session file and a worker, and tells people what
// runs.
//
// Makes the parts and hands each event to one of them. After each event Reconcile() tells and does
// what follows. Decisions are the scheduler's; the parts perform them. A GPU is never touched.
// State is in memory only: keeper and workers can tell all of it to the next daemon. Thread safety:
// one thread, the loop's.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "daemon/common/event_loop.h"
#include "daemon/control/admission.h"
#include "daemon/control/children.h"
#include "daemon/control/control_plane.h"
#include "daemon/control/core.h"
#include "daemon/control/in_process.h"
#include "daemon/control/lifetime.h"
#include "daemon/control/pending_hellos.h"
#include "daemon/control/worker_sessions.h"
#include "ipc/hello.h"
#include "ipc/options.h"
#include "ipc/socket.h"
#include "ipc/unique_fd.h"

namespace control {

class Daemon : public ChildrenListener,
               public ActionExecutor,
               public SessionLifecycle::Listener,
               public ControlPlane::Host {
 public:
  // `options.runtime_dir` is set and locked by the caller. `loop` and `children` outlive this
  // object. `on_ready` is called once.
  Daemon(const ipc::Options& options, common::EventLoop* loop, Children* children,
         Lifetime::OnReady on_ready, const Surroundings& around = Surroundings());
  ~Daemon() override;

  absl::Status Listen();
  // Returns the exit code.
  int Run();
  // SIGTERM.
  void OnTerminate() { lifetime_.OnTerminate(admission_.waiting()); }

  // OnHello() and OnRequest() are events of the loop only if the caller has the loop handle them.
  // A program has said hello, and its hello has passed every check.
  void OnHello(const ipc::Hello& hello, const ipc::Peer& peer, ipc::UniqueFd socket,
               ipc::UniqueFd pidfd) {
    admission_.Create(hello, peer, std::move(socket), std::move(pidfd));
  }
  // `peer` asks for this, and is told the answer.
  void OnRequest(const std::string& peer, const Command& command) {
    control_plane_.Do(peer, command);
  }
  const Core& core() const { return core_; }

  // --- ChildrenListener
  void OnChildrenReady() override;
  void OnWorkerReady(uint32_t) override {}  // Reconcile() finds it
  void OnWorkerReport(uint32_t worker, const WorkerReport& report,
                      std::vector<ipc::UniqueFd>* fds) override;
  void OnWorkerLost(uint32_t worker, const WorkerLoss& loss) override;
  void OnKeeperReplaced() override { in_process_.OnKeeperReplaced(); }
  void OnKeeperFailed(const std::string& sentence) override { lifetime_.OnFailure(sentence); }
  void OnAllStopped() override;

  // --- ActionExecutor
  void BeforeEvent() override {
    core_.observers.PassTime();
    // An adopted session may have company to come.
    if (core_.scheduler.serving()) core_.lanes.TellAlone();
  }
  void BeforeTimer() override;
  void Execute(const scheduler::Action& action) override;

  // --- SessionLifecycle::Listener
  void OnOverdue(uint64_t session) override { worker_sessions_.OnOverdue(session); }

  // --- ControlPlane::Host
  std::string OnStopAsked(bool force) override;

 private:
  // After each event of the loop: each part compares what is there with what it has told or begun,
  // and does the difference. No handler of an event calls such a follow-up by hand.
  void Reconcile();
  void RetireUnused();

  Core core_;
  Lifetime lifetime_;
  WorkerSessions worker_sessions_;
  InProcess in_process_;
  Admission admission_;
  PendingHellos hellos_;
  ControlPlane control_plane_;
};

}  // namespace control
