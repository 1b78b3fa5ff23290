#include "ipc/calls/vendor.h"

#include "daemon/control/worker_sessions.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "ipc/session_file.h"
#include "ipc/socket.h"

namespace control {

WorkerSessions::WorkerSessions(Core* core)
    : core_(core),
      link_({core->children, &core->sessions, &core->lifecycle, &core->grants,
             &core->observers.verdicts()}),
      moves_({core->children, &core->scheduler, &core->observers, &core->lifecycle, &core->grants,
              &link_}),
      offenders_({core->loop, core->children, &core->sessions, &core->scheduler, &core->observers,
                  &core->placement},
                 core->options.runtime_dir, core->options.kill_timeout_s) {}

void WorkerSessions::OnReport(const ipc::control::Attached& attached) {
  Session* const session = core_->sessions.Find(attached.session_id);
  if (session == nullptr) return;
  if (session->phase == Phase::kEntering) {
    moves_.OnEntered(session, attached);
  } else if (session->phase == Phase::kAttaching) {
    link_.OnAttached(session, attached);
  }
}

void WorkerSessions::OnReport(const ipc::control::SessionReleased& released) {
  const uint64_t id = released.session_id;
  Session* const session = core_->sessions.Find(id);
  if (session == nullptr) return;
  if (session->phase != Phase::kRunning && session->phase != Phase::kEnding) return;
  if (ipc::ProcessEnded(session->fds.process.get()) || session->phase == Phase::kEnding) {
    core_->lifecycle.Remove(session);
    return;
  }
  core_->grants.OnReleased(*session);
  if (!BeginMove(session)) {
    moves_.Lose(session, "the session left its worker and can't enter another; start it again");
  }
}

void WorkerSessions::OnReport(const ipc::control::SessionEnded& ended) {
  const uint64_t id = ended.session_id;
  Session* const session = core_->sessions.Find(id);
  if (session == nullptr || session->phase == Phase::kLost) return;
  spdlog::info("session {} ended", id);
  const bool program_lives = !ipc::ProcessEnded(session->fds.process.get());
  if (program_lives && session->phase == Phase::kRunning) {
    // It broke a rule (a malformed message) and is out; listed until its program ends.
    core_->lifecycle.Transition(session, Phase::kLost);
  } else {
    core_->lifecycle.Remove(session);
  }
}

std::vector<uint64_t> WorkerSessions::ConcernedBy(uint32_t worker, bool served) const {
  std::vector<uint64_t> concerned;
  for (const std::pair<const uint64_t, Session>& entry : core_->sessions.all()) {
    const Phase phase = entry.second.phase;
    const bool waits_for_it =
        (phase == Phase::kWaiting || phase == Phase::kMoving) && !served &&
        (entry.second.own_worker == worker || entry.second.record.contained == 0);
    const bool was_on_it = entry.second.worker == worker && phase != Phase::kLost;
    if (waits_for_it || was_on_it) concerned.push_back(entry.first);
  }
  return concerned;
}

void WorkerSessions::OnWorkerLost(uint32_t worker, const WorkerLoss& loss) {
  const std::vector<uint64_t> concerned = ConcernedBy(worker, loss.served);
  const uint64_t culprit = core_->scheduler.stopped() ? 0 : offenders_.OnWorkerLost(worker, loss);
  for (const uint64_t id : concerned) {
    Session* const session = core_->sessions.Find(id);
    if (session == nullptr) continue;
    if (session->phase == Phase::kAttaching && loss.served && link_.AttachAgain(session)) continue;
    if (session->phase == Phase::kWaiting || session->phase == Phase::kAttaching) {
      core_->lifecycle.Refuse(session, CUDA_ERROR_MPS_RPC_FAILURE, loss.sentence);
    } else if (id == culprit) {
      moves_.Lose(session, "work of this program ended its worker (laneway status says how)");
    } else {
      LoseWorkerOf(session, worker, loss.sentence);
    }
  }
}

void WorkerSessions::LoseWorkerOf(Session* session, uint32_t worker, const std::string& sentence) {
  if (session->own_worker == worker) session->own_worker = 0;
  // A session whose client did not get to run in that worker may be what ends workers.
  const bool ran = session->phase == Phase::kRunning &&
                   session->page->acknowledged.load() == session->record.generation;
  session->moves_failed = ran ? 0 : session->moves_failed + 1;
  if (session->phase != Phase::kEnding && BeginMove(session)) return;
  moves_.Lose(session, absl::StrCat(sentence, "; start the program again"));
}

// Lane memory of the last iteration is of no use in the next worker, and lanewayd counts none of a
// session's own lane.
bool WorkerSessions::BeginMove(Session* session) {
  core_->lanes.ReleaseOwnLane(session->record.session_id);
  return moves_.Begin(session);
}

// Sessions may wait for a worker that was ending when they came, or between two workers.
void WorkerSessions::ServeWaiting() {
  if (core_->scheduler.stopped()) return;
  for (const uint64_t id : core_->sessions.Ids()) {
    Session* const session = core_->sessions.Find(id);
    if (session == nullptr) continue;
    if (session->phase == Phase::kWaiting) {
      link_.Serve(session);
    } else if (session->phase == Phase::kMoving) {
      moves_.Serve(session);
    }
  }
}

}  // namespace control
