#include "ipc/calls/vendor.h"

#include "daemon/control/daemon.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/common/swap_file.h"
#include "daemon/control/greeting.h"
#include "ipc/futex.h"
#include "ipc/overloaded.h"
#include "ipc/runtime_dir.h"
#include "ipc/session_file.h"
#include "ipc/socket.h"
#include "ipc/state_dir.h"

namespace control {
namespace {

constexpr int64_t kLanesMax = 64;
constexpr int64_t kOverstayS = 10;  // without a boundary, then it is reported

scheduler::Limits LimitsOf(const ipc::Options& options) {
  scheduler::Limits limits;
  limits.sessions_max = ipc::limits::kSessionsMax;
  limits.lanes_max = static_cast<unsigned>(std::clamp<int64_t>(options.lanes, 1, kLanesMax));
  limits.slice_us = std::max<int64_t>(1, options.slice_ms) * 1000;
  limits.swap_bytes = ipc::BytesOption(options.swap, common::DefaultSwapBytes());
  const int64_t overstay_s = options.max_iteration_s > 0 ? options.max_iteration_s : kOverstayS;
  limits.iteration_max_us = overstay_s * 1'000'000;
  return limits;
}

}  // namespace

Daemon::Daemon(const ipc::Options& options, common::EventLoop* loop, Children* children,
               OnReady on_ready)
    : options_(options),
      on_ready_(std::move(on_ready)),
      loop_(loop),
      children_(children),
      scheduler_(options.policy, LimitsOf(options), loop, this, NowUs),
      observers_(ipc::StateDir(), {loop_, &sessions_, &scheduler_.state()}),
      lanes_({&sessions_, &scheduler_, children}),
      lifecycle_({loop, &sessions_, &scheduler_, &observers_, &lanes_},
                 {options.runtime_dir, options.kill_timeout_s * 1'000'000}, this),
      grants_({&sessions_, children, &scheduler_, &observers_, &lanes_, &lifecycle_},
              options.max_iteration_s, NowUs),
      worker_link_({children, &sessions_, &lifecycle_, &grants_}),
      in_process_({loop, children, &sessions_, &scheduler_, &lifecycle_, &grants_, &jobs_.seal()},
                  NowUs),
      moves_({children, &scheduler_, &observers_, &lifecycle_, &grants_, &worker_link_}),
      offenders_({loop, children, &sessions_, &scheduler_, &observers_, &placement_},
                 options.runtime_dir, options.kill_timeout_s),
      admission_({loop, children, &sessions_, &jobs_, &scheduler_, &observers_, &lanes_,
                  &lifecycle_, &grants_, &worker_link_, &in_process_, &placement_}),
      hellos_(loop,
              [this](const ipc::Hello& hello, const ipc::Peer& peer, ipc::UniqueFd socket,
                     ipc::UniqueFd pidfd) {
                admission_.Create(hello, peer, std::move(socket), std::move(pidfd));
              }),
      control_plane_(
          {&options_, loop, children, &sessions_, &jobs_, &scheduler_, &observers_, &placement_},
          this, NowUs) {
  loop_->AfterEach([this] { Reconcile(); });
}

Daemon::~Daemon() { loop_->AfterEach(nullptr); }

int64_t Daemon::NowUs() { return ipc::MonotonicNs() / 1000; }

absl::Status Daemon::Listen() {
  const absl::StatusOr<Seal> seal = Seal::Load(options_.runtime_dir);
  if (!seal.ok()) return seal.status();
  jobs_.SetSeal(*seal);
  absl::StatusOr<ipc::UniqueFd> hello = ipc::ListenAt(ipc::HelloSocketPath(options_.runtime_dir));
  if (!hello.ok()) return hello.status();
  hellos_.Listen(std::move(*hello));
  return control_plane_.Listen();
}

int Daemon::Run() {
  children_->Start(this);
  loop_->Run();
  return exit_code_;
}

// --- children ------------------------------------------------------------------------------------

void Daemon::OnChildrenReady() {
  scheduler_.Serve();
  TellCapacity();
  ReleaseUnknownOwners();
  OnKeeperReplaced();
  lanes_.TellShared();  // before anything is granted there
  spdlog::info("serving in {}; {} session(s) adopted", options_.runtime_dir,
               scheduler_.state().sessions.size());
  // The first program then need not wait for the driver to start.
  if (const absl::Status ensured = children_->EnsureWorker(); !ensured.ok()) {
    OnKeeperFailed(std::string(ensured.message()));
    return;
  }
  scheduler_.ApplyHeld();
  admission_.EnlistQueued();
  control_plane_.OnServing();
}

void Daemon::Execute(const scheduler::Action& action) {
  std::visit(ipc::Overloaded{
                 [this](const scheduler::Admit& admit) {
                   if (Session* const session = sessions_.Find(admit.session))
                     session->link->Begin(session);
                 },
                 [this](const scheduler::Queue& queue) {
                   spdlog::info("session {} {}", queue.session, queue.reason);
                   if (const Session* const session = sessions_.Find(queue.session))
                     TellQueued(*session, queue.reason);
                 },
                 [this](const scheduler::Reject& reject) {
                   Session* const session = sessions_.Find(reject.session);
                   if (session == nullptr) return;
                   lifecycle_.Refuse(session, CUDA_ERROR_MPS_MAX_CLIENTS_REACHED,
                                     absl::StrCat(reject.reason,
                                                  "; end a program or wait for one "
                                                  "(laneway ps lists them)"));
                 },
                 [this](const auto& other) { grants_.Execute(other); },
             },
             action);
}

void Daemon::BeforeTimer() {
  for (const uint64_t id : sessions_.Ids()) grants_.NoteProgress(id);
}

void Daemon::TellCapacity() {
  const ipc::control::KeeperReady& keeper = children_->keeper().description;
  for (uint32_t i = 0; i < keeper.device_count; ++i) {
    scheduler::CapacityChanged capacity;
    capacity.device = i;
    capacity.capacity_bytes = static_cast<int64_t>(keeper.devices[i].capacity_bytes);
    scheduler_.Apply(capacity);
  }
  // One lanewayd serves one user: the one that it runs as.
  scheduler::UserChanged user;
  user.user = geteuid();
  user.memory_bytes = ipc::BytesOption(options_.user_memory, 0);
  user.sessions_max = static_cast<uint32_t>(options_.user_sessions);
  scheduler_.Apply(user);
}

void Daemon::OnWorkerReport(uint32_t worker, const WorkerReport& report,
                            std::vector<ipc::UniqueFd>* fds) {
  namespace wire = ipc::control;
  std::visit(ipc::Overloaded{
                 [&](const wire::SessionRecord& record) { admission_.Adopt(worker, record, fds); },
                 [&](const wire::Attached& attached) { FinishAttach(attached); },
                 [&](const wire::SessionEnded& ended) { EndSession(ended.session_id); },
                 [&](const wire::SessionReleased& released) { FinishRelease(released.session_id); },
                 [&](const wire::Poisoned& poisoned) { offenders_.OnPoisoned(worker, poisoned); },
                 [&](const wire::Switched& switched) { grants_.OnReport(switched); },
                 [&](const wire::GateReport& gate) { grants_.OnReport(gate); },
                 [&](const wire::LaneNeeded& needed) { grants_.OnReport(needed); },
                 [&](const wire::LaneShrunk& shrunk) { lanes_.OnShrunk(worker, shrunk); },
                 [&](const wire::LaneChanged& changed) { lanes_.OnChanged(worker, changed); },
                 [&](const wire::MemoryNeeded& needed) { grants_.OnReport(needed); },
                 [&](const wire::MemoryFreed& freed) { grants_.OnReport(freed); },
                 [&](const wire::Swapped& swapped) { grants_.OnReport(swapped); },
             },
             report);
}

void Daemon::FinishAttach(const ipc::control::Attached& attached) {
  Session* const session = sessions_.Find(attached.session_id);
  if (session == nullptr) return;
  if (session->phase == Phase::kEntering) {
    moves_.OnEntered(session, attached);
  } else if (session->phase == Phase::kAttaching) {
    worker_link_.OnAttached(session, attached);
  }
}

void Daemon::FinishRelease(uint64_t id) {
  Session* const session = sessions_.Find(id);
  if (session == nullptr) return;
  if (session->phase != Phase::kRunning && session->phase != Phase::kEnding) return;
  if (ipc::ProcessEnded(session->pidfd.get()) || session->phase == Phase::kEnding) {
    lifecycle_.Remove(session);
  } else if (moves_.Begin(session)) {
    scheduler_.Apply(scheduler::Idle{id, true});
  } else {
    moves_.Lose(session, "the session left its worker and can't enter another; start it again");
  }
}

void Daemon::EndSession(uint64_t id) {
  Session* const session = sessions_.Find(id);
  if (session == nullptr || session->phase == Phase::kLost) return;
  spdlog::info("session {} ended", id);
  const bool program_lives = !ipc::ProcessEnded(session->pidfd.get());
  if (program_lives && session->phase == Phase::kRunning) {
    // It broke a rule (a malformed message) and is out; listed until its program ends.
    lifecycle_.Transition(session, Phase::kLost);
  } else {
    lifecycle_.Remove(session);
  }
}

void Daemon::OnWorkerLost(uint32_t worker, bool was_ready, const std::string& sentence) {
  grants_.OnWorkerLost(worker);
  lanes_.OnWorkerLost(worker);
  control_plane_.upgrade().OnWorkerLost(sentence);
  std::vector<uint64_t> concerned;
  for (const std::pair<const uint64_t, Session>& entry : sessions_.all()) {
    const Phase phase = entry.second.phase;
    const bool waits_for_it =
        (phase == Phase::kWaiting || phase == Phase::kMoving) && !was_ready &&
        (entry.second.own_worker == worker || entry.second.record.contained == 0);
    const bool was_on_it = entry.second.worker == worker && phase != Phase::kLost;
    if (waits_for_it || was_on_it) concerned.push_back(entry.first);
  }
  if (!stopping_ && !was_ready && on_ready_) {
    OnKeeperFailed(sentence);
    return;
  }
  const uint64_t culprit = stopping_ ? 0 : offenders_.OnWorkerLost(worker, sentence);
  for (const uint64_t id : concerned) {
    Session* const session = sessions_.Find(id);
    if (session == nullptr) continue;
    if (session->phase == Phase::kAttaching && was_ready && worker_link_.AttachAgain(session))
      continue;
    if (session->phase == Phase::kWaiting || session->phase == Phase::kAttaching) {
      lifecycle_.Refuse(session, CUDA_ERROR_MPS_RPC_FAILURE, sentence);
      continue;
    }
    if (session->own_worker == worker) session->own_worker = 0;
    if (id == culprit) {
      moves_.Lose(session, "work of this program ended its worker (laneway status says how)");
      continue;
    }
    // Did its client get to run in that worker? If not, the session may be what ends workers.
    const bool ran = session->phase == Phase::kRunning &&
                     session->page->acknowledged.load() == session->record.generation;
    session->moves_failed = ran ? 0 : session->moves_failed + 1;
    if (session->phase != Phase::kEnding && moves_.Begin(session)) continue;
    moves_.Lose(session, absl::StrCat(sentence, "; start the program again"));
  }
}

void Daemon::OnKeeperFailed(const std::string& sentence) {
  spdlog::error("{}", sentence);
  if (!on_ready_) return;
  std::exchange(on_ready_, nullptr)(sentence);
  exit_code_ = 1;
  control_plane_.OnFailure(sentence);
  StopEverything();
}

// --- what follows from each event ----------------------------------------------------------------

// What a step decides may give an earlier step something to do: a refused session leaves a place to
// the next one.
void Daemon::Reconcile() {
  if (!scheduler_.serving()) return;  // sessions and workers of an earlier lanewayd still come
  uint64_t decisions = 0;
  do {
    decisions = scheduler_.decisions();
    ServeWaiting();
    lanes_.Reconcile();
    control_plane_.upgrade().Reconcile();
    RetireUnused();
  } while (scheduler_.decisions() != decisions);
  TellReady();
  UpdateLinger();
}

// Sessions may wait for a worker that was ending when they came, or between two workers.
void Daemon::ServeWaiting() {
  if (stopping_) return;
  for (const uint64_t id : sessions_.Ids()) {
    Session* const session = sessions_.Find(id);
    if (session == nullptr) continue;
    if (session->phase == Phase::kWaiting) {
      worker_link_.Serve(session);
    } else if (session->phase == Phase::kMoving) {
      moves_.Serve(session);
    }
  }
}

void Daemon::RetireUnused() {
  for (const uint32_t worker :
       placement_.RetireUnused(children_->workers(), sessions_, control_plane_.upgrade().held())) {
    (void)children_->Send(worker, ipc::control::Stop{});
  }
}

void Daemon::TellReady() {
  if (on_ready_ && children_->Current() != nullptr) std::exchange(on_ready_, nullptr)("");
}

// --- leaving -------------------------------------------------------------------------------------

// The keeper may hold memory of sessions that ended without a lanewayd, or together with their
// worker. It may also hold lanes that have no session left.
void Daemon::ReleaseUnknownOwners() {
  for (const ipc::control::Usage& usage : children_->keeper().usages) {
    const uint64_t id = ipc::control::SessionOf(usage.owner);
    if (id == 0) {
      lanes_.ShrinkIfUnknown(usage.owner.id);
    } else if (sessions_.Find(id) == nullptr) {
      children_->TellKeeper(ipc::control::ReleaseOwner{usage.owner});
    }
  }
}

std::string Daemon::OnStopAsked(bool force) {
  admission_.NoticeEnding();
  const size_t alive = sessions_.CountAlive();
  if (alive != 0 && !force) {
    return absl::StrCat(alive, alive == 1 ? " program is" : " programs are",
                        " still running (laneway ps); wait for them or use laneway stop --force");
  }
  spdlog::info("told to stop{}", force ? " (forced)" : "");
  StopEverything();
  return {};
}

// The time counts from the last program on, whatever else happens meanwhile.
void Daemon::UpdateLinger() {
  const bool run_ended = std::exchange(had_run_, observers_.history().HasPrograms()) && !had_run_;
  const bool idle = !stopping_ && sessions_.CountAlive() == 0;
  if ((!idle || run_ended) && linger_timer_ != 0) loop_->Cancel(std::exchange(linger_timer_, 0));
  if (!idle || linger_timer_ != 0) return;
  linger_timer_ = loop_->After(options_.linger_s * 1'000'000, [this] {
    linger_timer_ = 0;
    if (observers_.history().HasPrograms()) {
      spdlog::debug("stays: a program of laneway run has not ended");
      return;  // and waits anew
    }
    spdlog::info("no program for {} s; stopping", options_.linger_s);
    StopEverything();
  });
}

void Daemon::StopEverything() {
  if (std::exchange(stopping_, true)) return;
  scheduler_.Stop();
  hellos_.Stop();
  control_plane_.OnFailure("the daemon was stopped while it started");
  for (const std::pair<const uint64_t, Session>& entry : sessions_.all()) {
    if (entry.second.page.get() == nullptr) {
      TellRefused(entry.second, CUDA_ERROR_MPS_CONNECTION_FAILED,
                  "Laneway was stopped while this program was waiting (laneway "
                  "stop --force)");
      continue;
    }
    ipc::MarkLost(entry.second.page.get(), CUDA_ERROR_MPS_RPC_FAILURE,
                  "Laneway was stopped while this program was running (laneway "
                  "stop --force)");
  }
  children_->Stop();
}

void Daemon::OnTerminate() {
  if (sessions_.CountAlive() == 0) return StopEverything();
  spdlog::info(
      "told to end while {} program(s) run: they go on, the next "
      "daemon adopts them",
      sessions_.CountAlive());
  Quit(0);
}

void Daemon::Quit(int code) {
  observers_.Close(stopping_);
  exit_code_ = code != 0 ? code : exit_code_;
  loop_->Quit();
}

void Daemon::OnAllStopped() {
  control_plane_.OnStopped();
  unlink(ipc::HelloSocketPath(options_.runtime_dir).c_str());
  spdlog::info("stopped");
  Quit(0);
}

}  // namespace control
