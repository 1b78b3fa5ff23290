#include "ipc/calls/vendor.h"

#include "daemon/control/offenders.h"

#include <spdlog/spdlog.h>

#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/common/crash_note.h"

namespace control {
namespace {

constexpr int64_t kLeaveUs = 2'000'000;  // for other sessions to come to a boundary and leave it

}  // namespace

Offenders::Offenders(const Parts& parts, std::string runtime_dir, int64_t kill_timeout_s)
    : parts_(parts), runtime_dir_(std::move(runtime_dir)), kill_timeout_s_(kill_timeout_s) {}

uint64_t Offenders::OnWorkerLost(uint32_t worker, const WorkerLoss& loss) {
  const uint64_t culprit = BlameForCrash(worker);
  const bool told = culprit != 0 || loss.expected || std::exchange(poisoned_worker_, 0) == worker;
  if (!told) parts_.observers->AddFault({0, 0, "", CUDA_ERROR_MPS_RPC_FAILURE, loss.sentence});
  return culprit;
}

void Offenders::OnPoisoned(uint32_t worker, const ipc::control::Poisoned& poisoned) {
  poisoned_worker_ = worker;
  Session* const culprit = parts_.sessions->Find(poisoned.session_id);
  spdlog::error("worker poisoned, session {}: {}", poisoned.session_id, poisoned.text);
  parts_.observers->AddFault({poisoned.session_id,
                              culprit == nullptr ? 0 : culprit->record.job.number,
                              culprit == nullptr ? "" : culprit->record.program,
                              static_cast<uint32_t>(poisoned.code), poisoned.text});
  if (culprit == nullptr) return;
  culprit->faulted = true;
  NoteOffence(*culprit);
}

void Offenders::NoteOffence(const Session& culprit) {
  const int times = parts_.placement->NoteOffence(culprit.record.uid, culprit.record.program);
  if (times != Placement::kOffencesMax) return;
  spdlog::warn("{} has ended {} workers: its next sessions get workers of their own",
               culprit.record.program, times);
}

// A worker that a signal ended leaves a note that names the session of the faulting thread. Returns
// that session; 0: there is no note.
uint64_t Offenders::BlameForCrash(uint32_t worker) {
  const std::optional<common::CrashNote> note =
      common::TakeCrashNote(common::CrashNotePath(runtime_dir_, worker));
  if (!note.has_value()) return 0;
  const Session* const culprit = parts_.sessions->Find(note->session_id);
  if (culprit == nullptr || culprit->worker != worker) return 0;
  const std::string text =
      absl::StrFormat("ended worker %u by signal %d (%s) at address %#x", worker, note->signal,
                      strsignal(note->signal), note->address);
  spdlog::error("session {} ({}) {}", note->session_id, culprit->record.program, text);
  parts_.observers->AddFault({note->session_id, culprit->record.job.number, culprit->record.program,
                              CUDA_ERROR_MPS_RPC_FAILURE, text});
  NoteOffence(*culprit);
  return note->session_id;
}

// No interface cancels a running kernel, so the worker of a kernel that does not end is killed.
// Before that, sessions of that worker that come to rest in time leave for another worker.
void Offenders::OnOverdue(uint64_t id) {
  const Session* const culprit = parts_.sessions->Find(id);
  if (culprit == nullptr || culprit->phase != Phase::kEnding || parts_.scheduler->stopped()) return;
  const uint32_t number = culprit->worker;
  const std::map<uint32_t, Worker>::const_iterator found = parts_.children->workers().find(number);
  if (found == parts_.children->workers().end()) return;
  if (found->second.state == WorkerState::kRetired) return;
  const std::string text = absl::StrCat("left work that did not end within ", kill_timeout_s_,
                                        " s: its worker is ended");
  spdlog::warn("session {} ({}) {}", id, culprit->record.program, text);
  parts_.observers->AddFault({id, culprit->record.job.number, culprit->record.program, 0, text});
  NoteOffence(*culprit);
  parts_.children->Transition(number, WorkerState::kRetired);
  size_t leaving = 0;
  for (const std::pair<const uint64_t, Session>& entry : parts_.sessions->all()) {
    const Session& session = entry.second;
    if (session.worker != number || session.phase != Phase::kRunning) continue;
    if (!ObstacleOf(session).empty()) continue;
    leaving += parts_.children->Send(number, ipc::control::ReleaseSession{entry.first}).ok();
  }
  if (leaving != 0)
    (void)parts_.children->EnsureWorker();  // a failure is told to the sessions that need it
  parts_.loop->After(leaving != 0 ? kLeaveUs : 0,
                     [this, number] { parts_.children->KillWorker(number); });
}

}  // namespace control
