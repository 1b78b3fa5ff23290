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

constexpr int kMovesFailedMax = 3;  // in a row; then the session itself may be what ends workers
constexpr int64_t kLeaveUs = 2'000'000;  // for others to come to a boundary and leave a worker

}  // namespace

std::string ObstacleOf(const Session& session) {
  if (session.in_process) return "in-process: the context is the program's own";
  if (session.record.transport != ipc::Transport::kRing) return "its calls travel over ZeroMQ";
  if (session.page.get() == nullptr) return "it has no session yet";
  const uint32_t obstacles = session.page->obstacles.load(std::memory_order_relaxed);
  if ((obstacles & ipc::kModuleState) != 0)
    return "a module of it has device variables, a heap or function pointers";
  if ((obstacles & ipc::kUnknownImage) != 0) return "a module of it cannot be looked into";
  if ((obstacles & ipc::kWrittenVariable) != 0)
    return "it copied into a module's variable from device memory";
  if ((obstacles & ipc::kCapturedLibrary) != 0)
    return "a graph of it has calls of cuBLAS, made with settings that are gone";
  if ((obstacles & ipc::kLogTooLong) != 0) return "it has more objects than a rebuild can hold";
  return {};
}

bool HasWorkInFlight(const Session& session) {
  const ipc::SessionPage* const page = session.page.get();
  if (page == nullptr) return false;
  const bool replays = session.record.generation != 0 &&  // else it never has moved
                       page->replaying.load(std::memory_order_seq_cst) != 0;
  return !replays && page->quiet_position.load(std::memory_order_seq_cst) !=
                         page->to_worker.tail.load(std::memory_order_seq_cst);
}

bool Daemon::BeginMove(Session* session) {
  if (!ObstacleOf(*session).empty() || HasWorkInFlight(*session) || stopping_) return false;
  if (session->faulted || session->page->loss.load() != 0 ||
      ipc::ProcessEnded(session->pidfd.get())) {
    return false;
  }
  if (session->moves_failed >= kMovesFailedMax) return false;
  session->page->moving.store(1, std::memory_order_seq_cst);
  session->phase = Phase::kMoving;
  session->worker = 0;
  SettleSwap(session);
  return true;
}

// Its worker may have done what it was asked for without a word. What it has not brought back, the
// next one does.
void Daemon::SettleSwap(Session* session) {
  if (!session->swap.has_value()) return;
  const bool out = common::HoldsMemory(session->swap_fd.get());
  if (out && session->swap->out == 0) return;
  const ipc::control::Swap swap = *std::exchange(session->swap, std::nullopt);
  scheduler_.Apply(
      scheduler::Swapped{swap.session_id, swap.out != 0, (swap.out != 0) == out, "it moved"});
}

void Daemon::LoseSession(Session* session, const std::string& sentence) {
  const uint64_t id = session->record.session_id;
  ipc::MarkLost(session->page.get(), CUDA_ERROR_MPS_RPC_FAILURE, sentence.c_str());
  if (session->phase == Phase::kEnding || ipc::ProcessEnded(session->pidfd.get())) {
    Leave(session);
    return;
  }
  session->phase = Phase::kLost;
  lanes_.ReleaseSession(id);
  session->swap_fd.Reset();
  session->progress = {};
  session->has_slot = false;
  scheduler_.Apply(scheduler::SessionLeft{id});
}

const Worker* Daemon::WorkerFor(const Session& session) const {
  return session.record.contained != 0 ? children_->Ready(session.own_worker)
                                       : children_->Current();
}

absl::Status Daemon::EnsureWorkerFor(Session* session) {
  if (session->record.contained == 0) return children_->EnsureWorker();
  if (session->own_worker != 0) return absl::OkStatus();
  absl::StatusOr<uint32_t> started = children_->StartWorker(true);
  if (started.ok()) session->own_worker = *started;
  return started.status();
}

void Daemon::Enter(Session* session) {
  const Worker* const worker = WorkerFor(*session);
  session->phase = Phase::kEntering;
  session->worker = worker->number;
  ++session->record.generation;
  SendAttach(*session);
}

void Daemon::OnEntered(Session* session, const ipc::control::Attached& attached) {
  const uint64_t id = session->record.session_id;
  ipc::SessionPage* const page = session->page.get();
  session->phase = Phase::kRunning;
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
  lanes_.TellShared();
  if (session->swap.has_value()) SendTo(*session, *session->swap);
  spdlog::info("session {} goes on in worker {}", id, session->worker);
  observers_.Note({.kind = EventKind::kMove,
                   .session = id,
                   .job = session->record.job.number,
                   .other = session->worker});
  CheckUpgrade();
}

void Daemon::FinishRelease(uint64_t id) {
  Session* const session = sessions_.Find(id);
  if (session == nullptr || session->phase == Phase::kLost) return;
  const uint32_t left = session->worker;
  if (ipc::ProcessEnded(session->pidfd.get()) || session->phase == Phase::kEnding) {
    Leave(session);
  } else if (BeginMove(session)) {
    scheduler_.Apply(scheduler::Idle{id, true});
    ServeWaiting();
  } else {
    LoseSession(session, "the session left its worker and can't enter another; start it again");
  }
  RetireIfUnused(left);
  CheckUpgrade();
}

// A worker that takes no more sessions ends with its last one.
void Daemon::RetireIfUnused(uint32_t number) {
  const std::map<uint32_t, Worker>::const_iterator found = children_->workers().find(number);
  if (found == children_->workers().end() || retired_.count(number) != 0) return;
  if (!found->second.own && !found->second.leaving) return;
  for (const std::pair<const uint64_t, Session>& entry : sessions_.all()) {
    const Session& session = entry.second;
    if (session.phase == Phase::kLost) continue;
    if (session.worker == number || session.own_worker == number) return;
  }
  retired_.insert(number);
  (void)children_->Send(number, ipc::control::Stop{});
}

// --- upgrade -------------------------------------------------------------------------------------

void Daemon::AnswerUpgrade(const std::string& peer, const Command&) {
  const std::string refusal = UpgradeWorkers(peer);
  if (!refusal.empty()) control_.Reply(peer, ErrorJson(refusal));
}

std::string Daemon::UpgradeWorkers(const std::string& peer) {
  if (!scheduler_.serving() || stopping_) return "the daemon is starting or stopping; try again";
  if (!upgrade_.peers.empty()) {
    upgrade_.peers.push_back(peer);
    return {};
  }
  upgrade_ = {};
  for (const std::pair<const uint32_t, Worker>& entry : children_->workers()) {
    if (entry.second.own) continue;
    upgrade_.from.insert(entry.first);
    if (!entry.second.leaving) upgrade_.stays.insert(entry.first);
  }
  for (const uint32_t number : upgrade_.from) children_->SetLeaving(number, true);
  upgrade_.peers.push_back(peer);
  if (const absl::Status ensured = children_->EnsureWorker(); !ensured.ok()) {
    FailUpgrade(std::string(ensured.message()));
    return {};
  }
  spdlog::info("replacing {} worker(s)", upgrade_.from.size());
  ReleaseForUpgrade();
  return {};
}

// Once there is a place to go to.
void Daemon::ReleaseForUpgrade() {
  if (upgrade_.peers.empty() || children_->Current() == nullptr || upgrade_.released) return;
  upgrade_.released = true;
  for (std::pair<const uint64_t, Session>& entry : sessions_.all()) {
    Session& session = entry.second;
    if (session.phase != Phase::kRunning || upgrade_.from.count(session.worker) == 0) continue;
    if (!ObstacleOf(session).empty()) {
      ++upgrade_.kept;
      continue;
    }
    if (children_->Send(session.worker, ipc::control::ReleaseSession{entry.first}).ok())
      upgrade_.moving.insert(entry.first);
  }
  upgrade_.moved = upgrade_.moving.size();
  for (const uint32_t number : upgrade_.from) RetireIfUnused(number);
  CheckUpgrade();
}

// The place to go to does not come: whoever was to leave stays.
void Daemon::FailUpgrade(const std::string& sentence) {
  if (upgrade_.peers.empty() || upgrade_.released || children_->HasWorker()) return;
  for (const uint32_t number : upgrade_.stays) {
    if (retired_.count(number) == 0) children_->SetLeaving(number, false);
  }
  const std::string answer = ErrorJson(sentence);
  for (const std::string& peer : upgrade_.peers) ReplyLater(peer, answer);
  upgrade_ = {};
}

void Daemon::CheckUpgrade() {
  if (!upgrade_.released) return;
  std::erase_if(upgrade_.moving, [this](uint64_t id) {
    const Session* const session = sessions_.Find(id);
    if (session == nullptr || session->phase == Phase::kLost) return true;
    return session->phase == Phase::kRunning && upgrade_.from.count(session->worker) == 0;
  });
  if (!upgrade_.moving.empty()) return;
  const std::string answer =
      absl::StrCat("{\"ok\":true,\"moved\":", upgrade_.moved, ",\"kept\":", upgrade_.kept, "}");
  for (const std::string& peer : upgrade_.peers) ReplyLater(peer, answer);
  upgrade_ = {};
}

// --- offenders -----------------------------------------------------------------------------------

void Daemon::NoteOffence(const Session& culprit) {
  const int times = ++offences_[{culprit.record.uid, culprit.record.program}];
  if (times != kOffencesMax) return;
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

// No interface cancels a running kernel: one that does not end takes its worker along. Who is, or
// comes, to rest meanwhile goes on in another.
void Daemon::AwaitEnd(Session* session) {
  const uint64_t id = session->record.session_id;
  session->phase = Phase::kEnding;
  if (options_.kill_timeout_s > 0)
    loop_->After(options_.kill_timeout_s * 1'000'000, [this, id] { OnStillThere(id); });
  scheduler_.Apply(scheduler::SessionEnding{id});
}

void Daemon::OnStillThere(uint64_t id) {
  const Session* const culprit = sessions_.Find(id);
  if (culprit == nullptr || culprit->phase != Phase::kEnding || stopping_) return;
  const uint32_t number = culprit->worker;
  const std::map<uint32_t, Worker>::const_iterator found = children_->workers().find(number);
  if (found == children_->workers().end() || !retired_.insert(number).second) return;
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

bool Daemon::IsQuarantined(const ipc::control::SessionRecord& record) const {
  const std::map<std::pair<uint32_t, std::string>, int>::const_iterator found =
      offences_.find({record.uid, record.program});
  return found != offences_.end() && found->second >= kOffencesMax;
}

}  // namespace control
