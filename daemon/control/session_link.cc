#include "daemon/control/session_link.h"

#include <spdlog/spdlog.h>

#include <optional>
#include <string>

namespace control {

namespace wire = ipc::control;

// A send fails when the worker is ending: its pidfd settles its sessions a moment later.
void WorkerLink::Send(const Session& session, const wire::DaemonToWorker& message) {
  if (session.phase == Phase::kRunning) (void)children_->Send(session.worker, message);
}

void ProgramLink::Send(const Session& session, const wire::DaemonToWorker& message) {
  const std::optional<wire::DaemonToProgram> told =
      wire::Redirected<wire::DaemonToProgram>(message);
  if (told.has_value()) SendOwn(session, *told);
}

void ProgramLink::SendOwn(const Session& session, const wire::DaemonToProgram& message) {
  if (session.phase != Phase::kRunning || !session.socket.valid()) return;
  (void)wire::Send<wire::DaemonToProgram>(session.socket.get(), message);
}

absl::Status WorkerLink::EnsureWorker(Session* session) {
  if (session->record.contained == 0) return children_->EnsureWorker();
  if (session->own_worker != 0) return absl::OkStatus();
  absl::StatusOr<uint32_t> started = children_->StartWorker(true);
  if (started.ok()) session->own_worker = *started;
  return started.status();
}

void WorkerLink::Attach(const Session& session) {
  const int fds[] = {session.session_fd.get(), session.pinned_fd.get(), session.pidfd.get(),
                     session.swap_fd.get()};
  const absl::Status sent =
      children_->Send(session.worker, wire::AttachSession{session.record}, fds);
  // A send fails when the worker is ending: its pidfd settles the session a moment later.
  if (!sent.ok()) spdlog::warn("worker {}: {}", session.worker, std::string(sent.message()));
}

uint32_t ProgramLink::DeviceMeant(const Session& session, uint32_t device) const {
  const ipc::SchedulingTerms& terms = session.record.job.scheduling;
  return device < terms.device_count ? terms.devices[device] : device;
}

void ProgramLink::OnMemoryCounted(const Session& session) {
  const scheduler::Session* const known = scheduler_->state().Find(session.record.session_id);
  if (known == nullptr) return;
  children_->TellKeeper(wire::CountOutside{{wire::OwnerKind::kSession, known->id},
                                           static_cast<uint64_t>(known->persistent_bytes),
                                           known->about.device});
}

}  // namespace control
