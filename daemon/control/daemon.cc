#include "ipc/calls/vendor.h"

#include "daemon/control/daemon.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/common/swap_file.h"
#include "daemon/control/command.h"
#include "daemon/control/status.h"
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
constexpr int kAttemptsMax =
    3;  // of attaching one session: a worker may die of another's fault just then

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
      commands_(loop),
      job_commands_({&sessions_, &jobs_, &scheduler_, &observers_,
                     [this](const Session& session) { SendTo(session, session.record); }}),
      run_commands_({children, &sessions_, &jobs_, &observers_, &job_commands_}),
      views_({&options_, children, &sessions_, &scheduler_.state(), &observers_}, NowUs),
      metrics_(loop_, [this] { return views_.Metrics(); }) {
  SetUpCommands();
}

Daemon::~Daemon() = default;

int64_t Daemon::NowUs() { return ipc::MonotonicNs() / 1000; }

absl::Status Daemon::Listen() {
  const absl::StatusOr<Seal> seal = Seal::Load(options_.runtime_dir);
  if (!seal.ok()) return seal.status();
  seal_ = *seal;
  jobs_.SetSeal(seal_);
  absl::StatusOr<ipc::UniqueFd> hello = ipc::ListenAt(ipc::HelloSocketPath(options_.runtime_dir));
  if (!hello.ok()) return hello.status();
  hellos_.Listen(
      std::move(*hello), [this](ipc::UniqueFd socket) { AcceptClient(std::move(socket)); },
      [](const std::string& sentence) { spdlog::warn("{}; raise ulimit -n", sentence); });
  const absl::Status bound = commands_.Listen(ipc::ControlEndpoint(options_.runtime_dir));
  if (!bound.ok()) return bound;
  if (options_.metrics_port == 0) return absl::OkStatus();
  return metrics_.Listen(static_cast<uint16_t>(options_.metrics_port));
}

int Daemon::Run() {
  children_->Start(this);
  loop_->Run();
  return exit_code_;
}

// --- children
// ----------------------------------------------------------------------------------------

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
  std::vector<uint64_t> waiting;
  for (const std::pair<const uint64_t, Session>& entry : sessions_.all()) {
    if (entry.second.phase == Phase::kQueued) waiting.push_back(entry.first);
  }
  for (const uint64_t id : waiting) {
    if (const Session* const session = sessions_.Find(id)) Enlist(*session);
  }
  scheduler_.ApplyHeld();
  AnswerWaitingJobs("");
  Reconcile();
  if (children_->Current() != nullptr && on_ready_) std::exchange(on_ready_, nullptr)("");
}

void Daemon::OnWorkerReady(uint32_t worker) {
  if (on_ready_ && scheduler_.serving()) std::exchange(on_ready_, nullptr)("");
  ServeWaiting();
  ReleaseForUpgrade();
  Reconcile();
}

void Daemon::OnWorkerReport(uint32_t worker, const WorkerReport& report,
                            std::vector<ipc::UniqueFd>* fds) {
  namespace wire = ipc::control;
  std::visit(ipc::Overloaded{
                 [&](const wire::SessionRecord& record) { AdoptSession(worker, record, fds); },
                 [&](const wire::Attached& attached) { FinishAttach(attached); },
                 [&](const wire::SessionEnded& ended) { EndSession(ended.session_id); },
                 [&](const wire::SessionReleased& released) { FinishRelease(released.session_id); },
                 [&](const wire::Poisoned& poisoned) { RecordFault(worker, poisoned); },
                 [&](const wire::Switched& switched) { RecordSwitch(switched); },
                 [&](const wire::GateReport& gate) { ApplyGateReport(gate); },
                 [&](const wire::LaneNeeded& needed) { RequestLane(needed); },
                 [&](const wire::LaneShrunk& shrunk) { lanes_.OnShrunk(worker, shrunk); },
                 [&](const wire::LaneChanged& changed) {
                   lanes_.ForwardChange(worker, changed);
                   lanes_.ReleaseIfEnded(changed.lane);
                 },
                 [&](const wire::MemoryNeeded& needed) { RequestMemory(needed); },
                 [&](const wire::MemoryFreed& freed) { TakeMemoryBack(freed); },
                 [&](const wire::Swapped& swapped) { FinishSwap(swapped); },
             },
             report);
}

void Daemon::AdoptSession(uint32_t worker, const ipc::control::SessionRecord& record,
                          std::vector<ipc::UniqueFd>* fds) {
  if (fds->size() != 4 || sessions_.Find(record.session_id) != nullptr) return;
  Session* const session = sessions_.Add(record);
  jobs_.Adopt(record.job);
  lifecycle_.Transition(session, Phase::kRunning);
  session->worker = worker;
  session->has_slot = true;
  session->session_fd = std::move((*fds)[0]);
  session->pidfd = std::move((*fds)[1]);
  session->pinned_fd = std::move((*fds)[2]);
  session->swap_fd = std::move((*fds)[3]);
  session->progress = common::ProgressMap(session->swap_fd.get());
  session->page = common::SessionPageMap(session->session_fd.get());
  if (record.contained != 0) session->own_worker = worker;
  observers_.Begin(*session);
  // It has its place already: the scheduler only learns of it.
  session->lane = record.lane;
  if (record.lane != 0) lanes_.AddGuest(record.lane, record.session_id);
  session->lane_bytes = record.lane_bytes;
  WatchClient(session);
  AdoptGrants(*session);
}

void Daemon::FinishAttach(const ipc::control::Attached& attached) {
  Session* const session = sessions_.Find(attached.session_id);
  if (session != nullptr && session->phase == Phase::kEntering) {
    OnEntered(session, attached);
    Reconcile();
    return;
  }
  if (session == nullptr || session->phase != Phase::kAttaching) return;
  if (attached.result == 0) {
    Welcome(session, attached);
    return;
  }
  ipc::Welcome welcome;
  welcome.result = attached.result;
  ipc::control::SetText(welcome.sentence, attached.sentence);
  if (session->socket.valid()) {
    (void)ipc::SendPacket(session->socket.get(),
                          {reinterpret_cast<const std::byte*>(&welcome), sizeof welcome});
  }
  spdlog::warn("session {} is refused by its worker: {}", attached.session_id, attached.sentence);
  // The worker says SessionEnded next; the slot is free only then.
  lifecycle_.Transition(session, Phase::kEnding);
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

void Daemon::RecordFault(uint32_t worker, const ipc::control::Poisoned& poisoned) {
  poisoned_worker_ = worker;
  Session* const culprit = sessions_.Find(poisoned.session_id);
  spdlog::error("worker poisoned, session {}: {}", poisoned.session_id, poisoned.text);
  observers_.AddFault({poisoned.session_id, culprit == nullptr ? 0 : culprit->record.job.number,
                       culprit == nullptr ? "" : culprit->record.program,
                       static_cast<uint32_t>(poisoned.code), poisoned.text});
  if (culprit == nullptr) return;
  culprit->faulted = true;
  NoteOffence(*culprit);
}

void Daemon::OnWorkerLost(uint32_t worker, bool was_ready, const std::string& sentence) {
  NoteWorkerLost(worker);
  lanes_.ForwardChange(worker, ipc::control::LaneChanged{0});  // it may have said so no more
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
  const uint64_t culprit = stopping_ ? 0 : BlameForCrash(worker);
  const bool told =
      culprit != 0 || placement_.Forget(worker) || std::exchange(poisoned_worker_, 0) == worker;
  if (!stopping_ && !told) observers_.AddFault({0, 0, "", CUDA_ERROR_MPS_RPC_FAILURE, sentence});
  for (const uint64_t id : concerned) {
    Session* const session = sessions_.Find(id);
    if (session == nullptr) continue;
    if (session->phase == Phase::kAttaching && was_ready && session->attempts < kAttemptsMax) {
      AttachAgain(session);
      continue;
    }
    if (session->phase == Phase::kWaiting || session->phase == Phase::kAttaching) {
      Turn(session, CUDA_ERROR_MPS_RPC_FAILURE, sentence);
      continue;
    }
    if (session->own_worker == worker) session->own_worker = 0;
    if (id == culprit) {
      LoseSession(session, "work of this program ended its worker (laneway status says how)");
      continue;
    }
    // Did its client get to run in that worker? If not, the session may be what ends workers.
    const bool ran = session->phase == Phase::kRunning &&
                     session->page->acknowledged.load() == session->record.generation;
    session->moves_failed = ran ? 0 : session->moves_failed + 1;
    if (session->phase != Phase::kEnding && BeginMove(session)) continue;
    LoseSession(session, absl::StrCat(sentence, "; start the program again"));
  }
  ServeWaiting();
  lanes_.RepeatOrdersOf(worker);
  FailUpgrade(sentence);
  Reconcile();
}

// Sessions may wait for a worker that was ending when they came, or between two workers.
void Daemon::ServeWaiting() {
  std::vector<uint64_t> waiting;
  for (const std::pair<const uint64_t, Session>& entry : sessions_.all()) {
    const Phase phase = entry.second.phase;
    if (phase == Phase::kWaiting || phase == Phase::kMoving) waiting.push_back(entry.first);
  }
  if (stopping_) return;
  for (const uint64_t id : waiting) {
    Session* const session = sessions_.Find(id);
    if (session == nullptr) continue;
    const absl::Status ensured = EnsureWorkerFor(session);
    const bool moves = session->phase == Phase::kMoving;
    if (!ensured.ok()) {
      const std::string sentence(ensured.message());
      moves ? LoseSession(session, sentence)
            : Turn(session, CUDA_ERROR_MPS_CONNECTION_FAILED, sentence);
    } else if (WorkerFor(*session, *children_) != nullptr) {
      moves ? Enter(session) : Attach(session);
    }
  }
  lanes_.TellUntold();
}

void Daemon::OnKeeperFailed(const std::string& sentence) {
  spdlog::error("{}", sentence);
  if (!on_ready_) return;
  std::exchange(on_ready_, nullptr)(sentence);
  exit_code_ = 1;
  AnswerWaitingJobs(sentence);
  StopEverything();
}

// --- leaving
// -----------------------------------------------------------------------------------------

// What a keeper still has of sessions that ended while no daemon was there, or whose worker did.
void Daemon::ReleaseUnknownOwners() {
  for (const ipc::control::Usage& usage : children_->keeper().usages) {
    const uint64_t id = ipc::control::SessionOf(usage.owner);
    if (id != 0 && sessions_.Find(id) == nullptr)
      children_->TellKeeper(ipc::control::ReleaseOwner{usage.owner});
  }
}

void Daemon::Reconcile() {
  if (!scheduler_.serving()) return;  // sessions and workers of an earlier lanewayd still come
  lanes_.TellShared();
  for (const uint32_t worker :
       placement_.RetireUnused(children_->workers(), sessions_, upgrade_.held())) {
    (void)children_->Send(worker, ipc::control::Stop{});
  }
  FinishUpgrade();
  UpdateLinger();
}

void Daemon::UpdateLinger() {
  if (linger_timer_ != 0) loop_->Cancel(std::exchange(linger_timer_, 0));
  if (sessions_.CountAlive() != 0 || stopping_ || !scheduler_.serving()) return;
  linger_timer_ = loop_->After(options_.linger_s * 1'000'000, [this] {
    linger_timer_ = 0;
    if (observers_.history().HasPrograms()) {
      spdlog::debug("stays: a program of laneway run has not ended");
      return UpdateLinger();
    }
    spdlog::info("no program for {} s; stopping", options_.linger_s);
    StopEverything();
  });
}

void Daemon::StopEverything() {
  if (std::exchange(stopping_, true)) return;
  scheduler_.Stop();
  AnswerWaitingJobs("the daemon was stopped while it started");
  for (const std::pair<const uint64_t, Session>& entry : sessions_.all()) {
    if (entry.second.page.get() == nullptr) {
      TellRefused(entry.second, CUDA_ERROR_MPS_CONNECTION_FAILED,
                  "Laneway was stopped while this program was waiting (laneway stop --force)");
      continue;
    }
    ipc::MarkLost(entry.second.page.get(), CUDA_ERROR_MPS_RPC_FAILURE,
                  "Laneway was stopped while this program was running (laneway stop --force)");
  }
  children_->Stop();
}

void Daemon::OnTerminate() {
  if (sessions_.CountAlive() == 0) return StopEverything();
  spdlog::info("told to end while {} program(s) run: they go on, the next daemon adopts them",
               sessions_.CountAlive());
  Quit(0);
}

void Daemon::Quit(int code) {
  observers_.Close(stopping_);
  exit_code_ = code != 0 ? code : exit_code_;
  loop_->Quit();
}

void Daemon::OnAllStopped() {
  for (const std::string& peer : stop_waiters_) commands_.Reply(peer, "{\"ok\":true}");
  stop_waiters_.clear();
  unlink(ipc::HelloSocketPath(options_.runtime_dir).c_str());
  spdlog::info("stopped");
  Quit(0);
}

}  // namespace control
