#include "ipc/calls/vendor.h"

#include "daemon/control/moves.h"

#include <spdlog/spdlog.h>

#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/control/placement.h"
#include "ipc/futex.h"
#include "ipc/session_file.h"
#include "ipc/socket.h"

namespace control {

bool Moves::Begin(Session* session) {
  if (parts_.scheduler->stopped() || !CanMove(*session)) return false;
  if (session->phase != Phase::kMoving) parts_.lifecycle->Transition(session, Phase::kMoving);
  return true;
}

void Moves::Lose(Session* session, const std::string& sentence) {
  ipc::MarkLost(session->page.get(), CUDA_ERROR_MPS_RPC_FAILURE, sentence.c_str());
  if (session->phase == Phase::kEnding || ipc::ProcessEnded(session->fds.process.get())) {
    parts_.lifecycle->Remove(session);
  } else {
    parts_.lifecycle->Transition(session, Phase::kLost);
  }
}

void Moves::Serve(Session* session) {
  if (const absl::Status ensured = parts_.worker_link->EnsureWorker(session); !ensured.ok()) {
    Lose(session, std::string(ensured.message()));
    return;
  }
  const Worker* const worker = WorkerFor(*session, *parts_.children);
  if (worker == nullptr) return;
  parts_.lifecycle->Transition(session, Phase::kEntering);
  session->worker = worker->number;
  parts_.worker_link->HandOver(*session);
}

void Moves::OnEntered(Session* session, const ipc::control::Attached& attached) {
  const uint64_t id = session->record.session_id;
  ipc::SessionPage* const page = session->page.get();
  parts_.lifecycle->Transition(session, Phase::kRunning);
  if (attached.result != 0) {  // SessionEnded follows
    spdlog::warn("session {} cannot move: {}", id, attached.sentence);
    ipc::MarkLost(page, CUDA_ERROR_MPS_RPC_FAILURE,
                  absl::StrCat("the worker was replaced, and its successor refuses the session: ",
                               attached.sentence)
                      .c_str());
    return;
  }
  const Worker* const worker = parts_.children->Ready(session->worker);
  if (worker == nullptr) return;  // its pidfd settles the session
  page->worker_pid = static_cast<uint32_t>(worker->process.pid);
  page->moving.store(0, std::memory_order_seq_cst);
  page->generation.store(session->record.generation, std::memory_order_seq_cst);
  page->client_doorbell.fetch_add(1, std::memory_order_seq_cst);
  ipc::FutexWakeAll(&page->client_doorbell);
  session->asks_lane = false;
  // The scheduler's orders from here on reach the worker without this function.
  const std::optional<ipc::control::Swap> open = session->swap;
  parts_.scheduler->Apply(
      scheduler::SessionMoved{id, static_cast<int64_t>(attached.persistent_bytes)});
  parts_.grants->TellLane(*session);
  if (open.has_value()) session->link->Send(*session, *open);
  spdlog::info("session {} goes on in worker {}", id, session->worker);
  parts_.observers->Note({.kind = EventKind::kMove,
                          .session = id,
                          .job = session->record.job.number,
                          .other = session->worker});
}

}  // namespace control
