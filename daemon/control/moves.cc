// Sessions that change their worker: after the worker's loss, for an upgrade, into a worker of
// their own. docs/recovery.md has the whole.
//
//     running --worker lost, or released--> moving --a worker is ready--> entering --Attached-->
//     running, in the next generation: the program's client does the rest
#include "ipc/calls/vendor.h"

#include <spdlog/spdlog.h>

#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/common/crash_note.h"
#include "daemon/common/swap_file.h"
#include "daemon/control/daemon.h"
#include "daemon/control/status.h"
#include "ipc/futex.h"
#include "ipc/session_file.h"
#include "ipc/socket.h"

namespace control {
namespace {

constexpr int64_t kLeaveUs = 2'000'000;  // for others to come to a boundary and leave a worker

}  // namespace

bool Daemon::BeginMove(Session* session) {
  if (stopping_ || !CanMove(*session)) return false;
  if (session->phase != Phase::kMoving) lifecycle_.Transition(session, Phase::kMoving);
  return true;
}

void Daemon::LoseSession(Session* session, const std::string& sentence) {
  ipc::MarkLost(session->page.get(), CUDA_ERROR_MPS_RPC_FAILURE, sentence.c_str());
  if (session->phase == Phase::kEnding || ipc::ProcessEnded(session->pidfd.get())) {
    lifecycle_.Remove(session);
  } else {
    lifecycle_.Transition(session, Phase::kLost);
  }
}

absl::Status Daemon::EnsureWorkerFor(Session* session) {
  if (session->record.contained == 0) return children_->EnsureWorker();
  if (session->own_worker != 0) return absl::OkStatus();
  absl::StatusOr<uint32_t> started = children_->StartWorker(true);
  if (started.ok()) session->own_worker = *started;
  return started.status();
}

void Daemon::Enter(Session* session) {
  const Worker* const worker = WorkerFor(*session, *children_);
  lifecycle_.Transition(session, Phase::kEntering);
  session->worker = worker->number;
  SendAttach(*session);
}

void Daemon::OnEntered(Session* session, const ipc::control::Attached& attached) {
  const uint64_t id = session->record.session_id;
  ipc::SessionPage* const page = session->page.get();
  lifecycle_.Transition(session, Phase::kRunning);
  if (attached.result != 0) {  // SessionEnded follows
    spdlog::warn("session {} cannot move: {}", id, attached.sentence);
    ipc::MarkLost(page, CUDA_ERROR_MPS_RPC_FAILURE,
                  absl::StrCat("the worker was replaced, and its successor refuses the session: ",
                               attached.sentence)
                      .c_str());
    return;
  }
  const Worker* const worker = children_->Ready(session->worker);
  if (worker == nullptr) return;  // its pidfd settles the session
  page->worker_pid = static_cast<uint32_t>(worker->process.pid);
  page->moving.store(0, std::memory_order_seq_cst);
  page->generation.store(session->record.generation, std::memory_order_seq_cst);
  page->client_doorbell.fetch_add(1, std::memory_order_seq_cst);
  ipc::FutexWakeAll(&page->client_doorbell);
  session->asks_lane = false;
  scheduler_.Apply(scheduler::SessionMoved{id, static_cast<int64_t>(attached.persistent_bytes)});
  TellLane(*session);
  if (session->swap.has_value()) SendTo(*session, *session->swap);
  spdlog::info("session {} goes on in worker {}", id, session->worker);
  observers_.Note({.kind = EventKind::kMove,
                   .session = id,
                   .job = session->record.job.number,
                   .other = session->worker});
}

void Daemon::FinishRelease(uint64_t id) {
  Session* const session = sessions_.Find(id);
  if (session == nullptr) return;
  if (session->phase != Phase::kRunning && session->phase != Phase::kEnding) return;
  if (ipc::ProcessEnded(session->pidfd.get()) || session->phase == Phase::kEnding) {
    lifecycle_.Remove(session);
  } else if (BeginMove(session)) {
    scheduler_.Apply(scheduler::Idle{id, true});
    ServeWaiting();
  } else {
    LoseSession(session, "the session left its worker and can't enter another; start it again");
  }
  Reconcile();
}

// --- upgrade -------------------------------------------------------------------------------------

// Answers the peer now, or when the upgrade is over.
void Daemon::UpgradeWorkers(const std::string& peer) {
  if (!scheduler_.serving() || stopping_) {
    commands_.Reply(peer, ErrorJson("the daemon is starting or stopping; try again"));
    return;
  }
  if (upgrade_.running()) {
    upgrade_.Join(peer);
    return;
  }
  upgrade_.Begin(peer, children_->workers());
  for (const uint32_t number : upgrade_.from()) children_->SetLeaving(number, true);
  if (const absl::Status ensured = children_->EnsureWorker(); !ensured.ok()) {
    FailUpgrade(std::string(ensured.message()));
    return;
  }
  spdlog::info("replacing {} worker(s)", upgrade_.from().size());
  ReleaseForUpgrade();
  Reconcile();
}

// Once the new worker is ready.
void Daemon::ReleaseForUpgrade() {
  if (!upgrade_.waits_for_worker() || children_->Current() == nullptr) return;
  for (const uint64_t id : upgrade_.Release(sessions_)) {
    const uint32_t worker = sessions_.Find(id)->worker;
    if (!children_->Send(worker, ipc::control::ReleaseSession{id}).ok()) upgrade_.Except(id);
  }
}

// The new worker does not come: the workers that were to leave stay.
void Daemon::FailUpgrade(const std::string& sentence) {
  if (!upgrade_.waits_for_worker() || children_->HasWorker()) return;
  for (const uint32_t number : upgrade_.held()) {
    if (!placement_.IsRetired(number)) children_->SetLeaving(number, false);
  }
  const std::string answer = ErrorJson(sentence);
  for (const std::string& peer : upgrade_.Fail().peers) commands_.Reply(peer, answer);
}

void Daemon::FinishUpgrade() {
  const std::optional<Upgrade::Answer> done = upgrade_.Finish(sessions_);
  if (!done.has_value()) return;
  const std::string answer =
      absl::StrCat("{\"ok\":true,\"moved\":", done->moved, ",\"kept\":", done->kept, "}");
  for (const std::string& peer : done->peers) commands_.Reply(peer, answer);
}

// --- offenders -----------------------------------------------------------------------------------

void Daemon::NoteOffence(const Session& culprit) {
  const int times = placement_.NoteOffence(culprit.record.uid, culprit.record.program);
  if (times != Placement::kOffencesMax) return;
  spdlog::warn("{} has ended {} workers: its next sessions get workers of their own",
               culprit.record.program, times);
}

// A worker that a signal ended leaves a note of whose work its thread was doing. Returns the
// session; 0: nobody knows.
uint64_t Daemon::BlameForCrash(uint32_t worker) {
  const std::optional<common::CrashNote> note =
      common::TakeCrashNote(common::CrashNotePath(options_.runtime_dir, worker));
  if (!note.has_value()) return 0;
  const Session* const culprit = sessions_.Find(note->session_id);
  if (culprit == nullptr || culprit->worker != worker) return 0;
  const std::string text =
      absl::StrFormat("ended worker %u by signal %d (%s) at address %#x", worker, note->signal,
                      strsignal(note->signal), note->address);
  spdlog::error("session {} ({}) {}", note->session_id, culprit->record.program, text);
  observers_.AddFault({note->session_id, culprit->record.job.number, culprit->record.program,
                       CUDA_ERROR_MPS_RPC_FAILURE, text});
  NoteOffence(*culprit);
  return note->session_id;
}

// No interface cancels a running kernel: one that does not end takes its worker along. Sessions of
// that worker that are, or come, to rest meanwhile go on in another.
void Daemon::OnOverdue(uint64_t id) {
  const Session* const culprit = sessions_.Find(id);
  if (culprit == nullptr || culprit->phase != Phase::kEnding || stopping_) return;
  const uint32_t number = culprit->worker;
  const std::map<uint32_t, Worker>::const_iterator found = children_->workers().find(number);
  if (found == children_->workers().end() || !placement_.Retire(number)) return;
  const std::string text = absl::StrCat("left work that did not end within ",
                                        options_.kill_timeout_s, " s: its worker is ended");
  spdlog::warn("session {} ({}) {}", id, culprit->record.program, text);
  observers_.AddFault({id, culprit->record.job.number, culprit->record.program, 0, text});
  NoteOffence(*culprit);
  children_->SetLeaving(number, true);
  size_t leaving = 0;
  for (const std::pair<const uint64_t, Session>& entry : sessions_.all()) {
    const Session& session = entry.second;
    if (session.worker != number || session.phase != Phase::kRunning) continue;
    if (!ObstacleOf(session).empty()) continue;
    leaving += children_->Send(number, ipc::control::ReleaseSession{entry.first}).ok();
  }
  if (leaving != 0) (void)children_->EnsureWorker();  // a failure is told to those who need it
  loop_->After(leaving != 0 ? kLeaveUs : 0, [this, number] { children_->KillWorker(number); });
}

}  // namespace control
