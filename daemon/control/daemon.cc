#include "daemon/control/daemon.h"

#include <spdlog/spdlog.h>

#include <functional>

#include "ipc/overloaded.h"

namespace control {

Daemon::Daemon(const ipc::Options& options, common::EventLoop* loop, Children* children,
               Lifetime::OnReady on_ready, const Surroundings& around)
    : core_(options, {loop, children, this, this}, around),
      lifetime_(&core_, std::move(on_ready),
                [this](const std::string& reason) {
                  hellos_.Stop();
                  control_plane_.OnFailure(reason);
                  admission_.RefuseWaiting(Lifetime::kStoppedWhileWaiting);
                }),
      worker_sessions_(&core_),
      in_process_({loop, children, &core_.sessions, &core_.scheduler, &core_.lifecycle,
                   &core_.grants, &core_.jobs.seal()},
                  core_.now_us),
      admission_(&core_, worker_sessions_.link(), &in_process_),
      hellos_(loop, std::bind_front(&Daemon::OnHello, this)),
      control_plane_(&core_, this) {
  loop->AfterEach([this] { Reconcile(); });
}

Daemon::~Daemon() { core_.loop->AfterEach(nullptr); }

absl::Status Daemon::Listen() {
  const std::string& dir = core_.options.runtime_dir;
  if (const absl::Status loaded = core_.jobs.LoadSeal(dir); !loaded.ok()) return loaded;
  if (const absl::Status bound = hellos_.Listen(dir); !bound.ok()) return bound;
  return control_plane_.Listen();
}

int Daemon::Run() {
  core_.children->Start(this);
  core_.loop->Run();
  return lifetime_.exit_code();
}

// --- events --------------------------------------------------------------------------------------

void Daemon::OnChildrenReady() {
  admission_.NoteUsedNumbers();
  core_.scheduler.Serve();
  core_.TellCapacity();
  core_.lanes.ReleaseUnknownOwners();
  OnKeeperReplaced();
  core_.lanes.TellShared();  // before anything is granted there
  core_.grants.TellAdoptedLanes();
  spdlog::info("serving in {}; {} session(s) adopted", core_.options.runtime_dir,
               core_.scheduler.state().sessions.size());
  // The first program then need not wait for the driver to start.
  if (const absl::Status ensured = core_.children->EnsureWorker(); !ensured.ok()) {
    lifetime_.OnFailure(std::string(ensured.message()));
    return;
  }
  core_.scheduler.ApplyHeld();
  admission_.EnlistWaiting();
  control_plane_.OnServing();
}

void Daemon::OnWorkerReport(uint32_t worker, const WorkerReport& report,
                            std::vector<ipc::UniqueFd>* fds) {
  namespace wire = ipc::control;
  std::visit(
      ipc::Overloaded{
          [&](const wire::SessionRecord& record) { admission_.Adopt(worker, record, fds); },
          [&](const wire::Attached& attached) { worker_sessions_.OnReport(attached); },
          [&](const wire::SessionEnded& ended) { worker_sessions_.OnReport(ended); },
          [&](const wire::SessionReleased& released) { worker_sessions_.OnReport(released); },
          [&](const wire::Poisoned& poisoned) { worker_sessions_.OnPoisoned(worker, poisoned); },
          [&](const wire::Switched& switched) { core_.grants.OnReport(worker, switched); },
          [&](const wire::LaneShrunk& shrunk) { core_.lanes.OnShrunk(worker, shrunk); },
          [&](const wire::LaneChanged& changed) { core_.lanes.OnChanged(worker, changed); },
          // Compiles for reports of sessions about lanes, turns and memory.
          [&](const auto& other) { core_.grants.OnReport(other); },
      },
      report);
}

void Daemon::OnWorkerLost(uint32_t worker, const WorkerLoss& loss) {
  // The lost worker may have made memory in a lane without saying so. The other workers hear first
  // that lanes may have changed: the next session of the lane may be granted it at once.
  core_.lanes.OnWorkerLost(worker);
  core_.grants.OnWorkerLost(worker);
  control_plane_.upgrade().OnWorkerLost(loss.sentence);
  if (!loss.served && lifetime_.starting() && !core_.scheduler.stopped()) {
    lifetime_.OnFailure(loss.sentence);
  } else {
    worker_sessions_.OnWorkerLost(worker, loss);
  }
}

void Daemon::OnAllStopped() {
  control_plane_.OnStopped();
  lifetime_.OnAllStopped();
}

void Daemon::BeforeTimer() {
  for (const uint64_t id : core_.sessions.Ids()) core_.grants.NoteProgress(id);
}

void Daemon::Execute(const scheduler::Action& action) {
  std::visit(ipc::Overloaded{
                 [this](const scheduler::Admit& admit) { admission_.Execute(admit); },
                 [this](const scheduler::Queue& queue) { admission_.Execute(queue); },
                 [this](const scheduler::Reject& reject) { admission_.Execute(reject); },
                 [this](const auto& other) { core_.grants.Execute(other); },
             },
             action);
}

std::string Daemon::OnStopAsked(bool force) {
  admission_.NoticeEnding();
  return lifetime_.StopUnlessUsed(force, admission_.waiting());
}

// --- what follows from each event ----------------------------------------------------------------

// A step that has the scheduler decide may cause work for an earlier step: a refused session leaves
// its place to a queued session, which then waits for a worker.
void Daemon::Reconcile() {
  if (!core_.scheduler.serving()) return;  // sessions of an earlier lanewayd still come
  uint64_t decisions = 0;
  do {
    decisions = core_.scheduler.decisions();
    worker_sessions_.ServeWaiting();
    core_.lanes.Reconcile();
    control_plane_.upgrade().Reconcile();
    RetireUnused();
  } while (core_.scheduler.decisions() != decisions);
  lifetime_.Reconcile();
}

void Daemon::RetireUnused() {
  const std::set<uint32_t>& held = control_plane_.upgrade().held();
  for (const uint32_t worker : UnusedWorkers(core_.children->workers(), core_.sessions, held))
    core_.children->Retire(worker);
}

}  // namespace control
