#include "ipc/calls/vendor.h"

#include "daemon/control/worker_link.h"

#include <spdlog/spdlog.h>

#include <string>
#include <utility>

#include "daemon/control/hello_check.h"
#include "daemon/control/placement.h"
#include "daemon/control/session_files.h"
#include "ipc/socket.h"

namespace control {

namespace wire = ipc::control;

// A send fails when the worker is ending: its pidfd settles its sessions a moment later.
// The record that went along to a worker which still makes the session may change meanwhile: the
// next lanewayd takes over what the worker knows. All else concerns sessions that run.
void WorkerLink::Send(const Session& session, const wire::DaemonToWorker& message) {
  const bool is_being_made =
      session.phase == Phase::kAttaching || session.phase == Phase::kEntering;
  if (session.phase == Phase::kRunning ||
      (is_being_made && std::holds_alternative<wire::SessionRecord>(message)))
    (void)parts_.children->Send(session.worker, message);
}

// Its worker writes it: lanewayd charges no session by the word of its client.
const ipc::Progress& WorkerLink::ProgressOf(const Session& session) const {
  return *session.progress.get();
}

absl::Status WorkerLink::EnsureWorker(Session* session) {
  if (session->record.contained == 0) return parts_.children->EnsureWorker();
  if (session->own_worker != 0) return absl::OkStatus();
  absl::StatusOr<uint32_t> started = parts_.children->StartWorker(true);
  if (started.ok()) session->own_worker = *started;
  return started.status();
}

void WorkerLink::HandOver(const Session& session) {
  const absl::Status sent = parts_.children->Send(
      session.worker, wire::AttachSession{session.record}, session.fds.ToMessage());
  // A send fails when the worker is ending: its pidfd settles the session a moment later.
  if (!sent.ok()) spdlog::warn("worker {}: {}", session.worker, std::string(sent.message()));
}

void WorkerLink::Begin(Session* session) {
  parts_.sessions->TakeSlot(session);
  if (const absl::Status made = MakeWorkerFiles(session); !made.ok()) {
    parts_.lifecycle->Refuse(session, CUDA_ERROR_OPERATING_SYSTEM, std::string(made.message()));
    return;
  }
  parts_.verdicts->Give(*session);
  parts_.lifecycle->Transition(session, Phase::kWaiting);
}

void WorkerLink::Serve(Session* session) {
  const absl::Status ensured = EnsureWorker(session);
  if (!ensured.ok()) {
    parts_.lifecycle->Refuse(session, CUDA_ERROR_MPS_CONNECTION_FAILED,
                             std::string(ensured.message()));
  } else if (const Worker* const worker = WorkerFor(*session, *parts_.children)) {
    Attach(session, *worker);
  }
}

void WorkerLink::Attach(Session* session, const Worker& worker) {
  parts_.lifecycle->Transition(session, Phase::kAttaching);
  session->worker = worker.number;
  session->page->worker_pid = static_cast<uint32_t>(worker.process.pid);
  HandOver(*session);
}

// Its worker was lost before it served: a new one gets new files, because the old ones may be
// marked lost.
bool WorkerLink::AttachAgain(Session* session) {
  if (session->attempts >= kAttemptsMax) return false;
  session->has_slot = false;
  session->own_worker = 0;  // of a contained session: another one is started
  Begin(session);
  return true;
}

void WorkerLink::Welcome(Session* session, const wire::Attached& attached) {
  ipc::Welcome welcome;
  welcome.session_id = session->record.session_id;
  welcome.slot = session->record.slot;
  const Worker& worker = parts_.children->workers().at(session->worker);
  welcome.worker_pid = static_cast<uint32_t>(worker.process.pid);
  const uint32_t chosen = session->record.job.scheduling.device_count;
  welcome.device_count = chosen != 0 ? chosen : parts_.children->keeper().description.device_count;
  welcome.tables = ipc::OwnTables();
  wire::SetText(welcome.zmq_endpoint, attached.zmq_endpoint);
  const int fds[] = {session->fds.file.get(), session->fds.pinned.get()};
  const absl::Status sent = session->socket.valid()
                                ? ipc::SendPacket(session->socket.get(), BytesOf(welcome), fds)
                                : absl::UnavailableError("it closed its connection");
  parts_.lifecycle->Transition(session, Phase::kRunning);
  parts_.grants->TellLane(*session);
  if (sent.ok()) {
    spdlog::info("session {}: {} (pid {}) on worker {}, slot {}", session->record.session_id,
                 session->record.program, session->record.pid, session->worker,
                 session->record.slot);
    return;
  }
  spdlog::info("session {} gave up: {}", session->record.session_id, std::string(sent.message()));
  (void)parts_.children->Send(session->worker, wire::DetachSession{session->record.session_id});
  parts_.lifecycle->Transition(session, Phase::kEnding);
}

void WorkerLink::OnAttached(Session* session, const wire::Attached& attached) {
  if (attached.result == 0) {
    Welcome(session, attached);
    return;
  }
  ipc::Welcome welcome;
  welcome.result = attached.result;
  wire::SetText(welcome.sentence, attached.sentence);
  if (session->socket.valid()) {
    (void)ipc::SendPacket(session->socket.get(), BytesOf(welcome));
  }
  spdlog::warn("session {} is refused by its worker: {}", attached.session_id, attached.sentence);
  // The worker says SessionEnded next; the slot is free only then.
  parts_.lifecycle->Transition(session, Phase::kEnding);
}

}  // namespace control
