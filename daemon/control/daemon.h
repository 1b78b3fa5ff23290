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
#include "daemon/common/acceptor.h"
#include "daemon/common/event_loop.h"
#include "daemon/control/children.h"
#include "daemon/control/command_server.h"
#include "daemon/control/http.h"
#include "daemon/control/job_commands.h"
#include "daemon/control/jobs.h"
#include "daemon/control/lane_registry.h"
#include "daemon/control/observers.h"
#include "daemon/control/placement.h"
#include "daemon/control/run_commands.h"
#include "daemon/control/scheduler_port.h"
#include "daemon/control/seal.h"
#include "daemon/control/session_lifecycle.h"
#include "daemon/control/session_table.h"
#include "daemon/control/upgrade.h"
#include "daemon/control/views.h"
#include "ipc/hello.h"
#include "ipc/options.h"
#include "ipc/unique_fd.h"
#include "scheduler/scheduler.h"

namespace control {

class Daemon : public ChildrenListener, public ActionExecutor, public SessionLifecycle::Listener {
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
  void OnWorkerReady(uint32_t worker) override;
  void OnWorkerReport(uint32_t worker, const WorkerReport& report,
                      std::vector<ipc::UniqueFd>* fds) override;
  void OnWorkerLost(uint32_t worker, bool was_ready, const std::string& sentence) override;
  void OnKeeperReplaced() override;
  void OnKeeperFailed(const std::string& sentence) override;
  void OnAllStopped() override;

  // --- ActionExecutor
  void BeforeEvent() override;
  void BeforeTimer() override;
  void Execute(const scheduler::Action& action) override;

  // --- SessionLifecycle::Listener
  void OnOverdue(uint64_t id) override;
  void OnSessionOut() override { Reconcile(); }

 private:
  // --- the door (door.cc)
  void AcceptClient(ipc::UniqueFd socket);
  void DropGreeting(int fd);
  void OnHello(int fd);
  void Arrive(const ipc::Hello& hello, const ipc::Peer& peer, ipc::UniqueFd socket,
              ipc::UniqueFd pidfd);
  ipc::JobTerms JobOf(const ipc::JobTicket& ticket);
  void Enlist(const Session& session);
  void NoticeEnding();
  void Begin(Session* session);
  void Attach(Session* session);
  void SendAttach(const Session& session);
  void AttachAgain(Session* session);
  absl::Status MakeFiles(Session* session);
  void Welcome(Session* session, const ipc::control::Attached& attached);
  void TellRefused(const Session& session, unsigned code, const std::string& sentence);
  void Turn(Session* session, unsigned code, const std::string& sentence);
  void OnClientSocket(uint64_t id);
  void OnClientEnded(uint64_t id);
  void WatchClient(Session* session);

  // --- programs with a context of their own (in_process.cc)
  uint64_t ForgetEarlier(pid_t pid, const ipc::Hello& hello);
  absl::Status OnlyPage(const Session& session);
  void BeginProgram(Session* session);
  void AdoptProgram(uint64_t id);
  uint64_t BelievedBytes(const Session& session) const;
  bool WelcomeProgram(Session* session);
  void OnProgramMessage(Session* session);
  void HandleProgram(const Session& session, const ipc::control::ProgramToDaemon& message);
  void OnProgramAway(Session* session);
  void AnswerMemory(uint64_t id, uint32_t device);
  void CountOutside(const Session& session);

  // --- sessions (daemon.cc)
  void AdoptSession(uint32_t worker, const ipc::control::SessionRecord& record,
                    std::vector<ipc::UniqueFd>* fds);
  void FinishAttach(const ipc::control::Attached& attached);
  void EndSession(uint64_t id);
  void RecordFault(uint32_t worker, const ipc::control::Poisoned& poisoned);

  // --- lanes and grants (grants.cc)
  scheduler::SessionArrived Describe(const Session& session) const;
  void TellCapacity();
  void NoteProgress(uint64_t id);
  void RecordSwitch(const ipc::control::Switched& switched);
  void ApplyGateReport(const ipc::control::GateReport& report);
  void RequestMemory(const ipc::control::MemoryNeeded& needed);
  void TakeMemoryBack(const ipc::control::MemoryFreed& freed);
  void RequestLane(const ipc::control::LaneNeeded& needed);
  void FinishSwap(const ipc::control::Swapped& swapped);
  void AdoptGrants(const Session& session);
  void NoteWorkerLost(uint32_t worker);
  void SendTo(const Session& session, const ipc::control::DaemonToWorker& message);
  void SendToProgram(const Session& session, const ipc::control::DaemonToProgram& message);
  void TellLane(const Session& session);
  void AssignLane(const scheduler::AssignLane& assign);
  void RefuseMemory(const scheduler::RefuseMemory& refusal);
  void Swap(const ipc::control::Swap& swap);
  void GrantOrRevoke(uint64_t id, uint64_t lane, bool grant);
  void OnOverstay(const scheduler::Report& report);
  void PerformGrant(const scheduler::Action& action);
  // --- on which terms sessions run, and on which device (terms.cc)
  void TellQuotas();
  // The device that a program means by this number.
  uint32_t DeviceSeenAs(const Session& session, uint32_t seen) const;
  // It asks for memory there. False: what it asked for there can't be.
  bool NoteDevice(uint64_t id, uint32_t device, bool for_lane);

  void ReleaseUnknownOwners();

  // --- sessions that change their worker (moves.cc)
  // False: it can't, and nothing has changed.
  bool BeginMove(Session* session);
  void LoseSession(Session* session, const std::string& sentence);
  absl::Status EnsureWorkerFor(Session* session);
  void Enter(Session* session);
  void OnEntered(Session* session, const ipc::control::Attached& attached);
  void FinishRelease(uint64_t id);
  void UpgradeWorkers(const std::string& peer);
  void ReleaseForUpgrade();
  void FailUpgrade(const std::string& sentence);
  void FinishUpgrade();
  uint64_t BlameForCrash(uint32_t worker);
  void NoteOffence(const Session& culprit);

  void ServeWaiting();
  // After a session, a worker or the keeper came or went: tells and does what follows from what is
  // there now, and has not been told or done.
  void Reconcile();
  void UpdateLinger();
  void StopEverything();
  void Quit(int code);

  // --- people's commands
  void SetUpCommands();
  void AnswerJob(const std::string& peer, const Command& command);
  // Those that were asked before lanewayd served. `failure`: why it never will.
  void AnswerWaitingJobs(const std::string& failure);
  void AnswerStop(const std::string& peer, const Command& command);
  void TellQueued(uint64_t id, const std::string& reason);

  static int64_t NowUs();

  const ipc::Options options_;
  OnReady on_ready_;
  common::EventLoop* const loop_;
  Children* const children_;
  SessionTable sessions_;
  Seal seal_;
  Jobs jobs_;
  SchedulerPort scheduler_;
  Observers observers_;
  LaneRegistry lanes_;
  SessionLifecycle lifecycle_;
  CommandServer commands_;
  JobCommands job_commands_;
  RunCommands run_commands_;
  Views views_;
  common::Acceptor hellos_{loop_};
  struct Greeting {
    ipc::UniqueFd socket;
    common::EventLoop::TimerId timer = 0;
    uint64_t number = 0;  // the oldest goes first
  };
  static constexpr size_t kGreetingsMax = 128;
  std::map<int, Greeting> greeting_;  // connected, hello not yet heard
  uint64_t greeted_ = 0;
  MetricsServer metrics_;
  std::vector<std::string> stop_waiters_;  // peers of the control plane
  std::vector<std::pair<std::string, Command>> waiting_jobs_;
  Placement placement_;
  Upgrade upgrade_;
  uint32_t poisoned_worker_ = 0;  // said so; its end follows
  common::EventLoop::TimerId linger_timer_ = 0;
  bool stopping_ = false;
  int exit_code_ = 0;
};

}  // namespace control
