// lanewayd: lets programs in, gives each a slot, a session file and a worker, and tells people what
// runs.
//
// Decisions are the scheduler's; what is here performs them. A GPU is never touched. State is in
// memory only: keeper and workers can tell all of it to the next daemon. Thread safety: one thread,
// the loop's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "daemon/common/event_loop.h"
#include "daemon/control/admission.h"
#include "daemon/control/children.h"
#include "daemon/control/control_plane.h"
#include "daemon/control/grants.h"
#include "daemon/control/in_process.h"
#include "daemon/control/jobs.h"
#include "daemon/control/lane_registry.h"
#include "daemon/control/moves.h"
#include "daemon/control/observers.h"
#include "daemon/control/offenders.h"
#include "daemon/control/pending_hellos.h"
#include "daemon/control/placement.h"
#include "daemon/control/scheduler_port.h"
#include "daemon/control/session_lifecycle.h"
#include "daemon/control/session_table.h"
#include "daemon/control/worker_link.h"
#include "ipc/hello.h"
#include "ipc/options.h"
#include "ipc/unique_fd.h"
#include "scheduler/scheduler.h"

namespace control {

class Daemon : public ChildrenListener,
               public ActionExecutor,
               public SessionLifecycle::Listener,
               public ControlPlane::Host {
 public:
  using OnReady = std::function<void(const std::string& failure)>;  // empty: ready

  // `options.runtime_dir` is set and locked by the caller. `loop` and `children` outlive this
  // object. `on_ready` is called once.
  Daemon(const ipc::Options& options, common::EventLoop* loop, Children* children,
         OnReady on_ready);
  ~Daemon() override;

  absl::Status Listen();
  // Returns the exit code.
  int Run();
  // SIGTERM: with programs running, only this process ends (they go on, the next daemon adopts
  // them).
  void OnTerminate();

  // --- ChildrenListener
  void OnChildrenReady() override;
  void OnWorkerReady(uint32_t) override {}  // Reconcile() finds it
  void OnWorkerReport(uint32_t worker, const WorkerReport& report,
                      std::vector<ipc::UniqueFd>* fds) override;
  void OnWorkerLost(uint32_t worker, bool was_ready, const std::string& sentence) override;
  void OnKeeperReplaced() override { in_process_.OnKeeperReplaced(); }
  void OnKeeperFailed(const std::string& sentence) override;
  void OnAllStopped() override;

  // --- ActionExecutor
  void BeforeEvent() override {
    if (scheduler_.serving()) lanes_.TellAlone();  // an adopted session may have company to come
  }
  void BeforeTimer() override;
  void Execute(const scheduler::Action& action) override;

  // --- SessionLifecycle::Listener
  void OnOverdue(uint64_t id) override { offenders_.OnOverdue(id); }

  // --- ControlPlane::Host
  std::string OnStopAsked(bool force) override;

 private:
  void FinishAttach(const ipc::control::Attached& attached);
  void FinishRelease(uint64_t id);
  void EndSession(uint64_t id);
  void TellCapacity();
  void ReleaseUnknownOwners();

  // After each event, whatever it was: tells and does what follows from what is there now, and has
  // not been told or done. Handlers of events call no such follow-up by hand.
  void Reconcile();
  void ServeWaiting();
  void RetireUnused();
  void TellReady();
  void UpdateLinger();
  void StopEverything();
  void Quit(int code);

  static int64_t NowUs();

  const ipc::Options options_;
  OnReady on_ready_;
  common::EventLoop* const loop_;
  Children* const children_;
  SessionTable sessions_;
  Jobs jobs_;
  SchedulerPort scheduler_;
  Observers observers_;
  LaneRegistry lanes_;
  Placement placement_;
  SessionLifecycle lifecycle_;
  Grants grants_;
  WorkerLink worker_link_;
  InProcess in_process_;
  Moves moves_;
  Offenders offenders_;
  Admission admission_;
  PendingHellos hellos_;
  ControlPlane control_plane_;
  common::EventLoop::TimerId linger_timer_ = 0;
  bool had_run_ = false;  // a program of `laneway run` had not ended
  bool stopping_ = false;
  int exit_code_ = 0;
};

}  // namespace control
