#include "ipc/calls/vendor.h"

#include "daemon/control/in_process.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "daemon/control/hello_check.h"
#include "daemon/control/session_files.h"
#include "ipc/overloaded.h"
#include "ipc/session_file.h"
#include "ipc/socket.h"

namespace control {
namespace {

namespace wire = ipc::control;

// A program without a socket that does not come back has become another one (exec).
constexpr int64_t kComeBackUs = 5'000'000;

// The content of the seal in a Welcome: with it a session goes on in its own process alone.
struct SessionProof {
  uint64_t session_id = 0;
  uint64_t pid = 0;
};
constexpr char kProofPurpose[] = "session";

// A program speaks about its own session alone. A report about a lane that the session has left
// already is merely late, and causes no warning.
bool IsOwnExit(const wire::Switched& switched, const Session& session) {
  return switched.from == session.record.session_id && switched.to == 0 &&
         switched.lane == session.lane;
}

// Warns about a report of another session.
template <class Report>
bool IsOwn(const Report& report, const Session& session) {
  const uint64_t id = session.record.session_id;
  if (report.session_id == id) return true;
  spdlog::warn("session {} says what no program says", id);
  return false;
}

}  // namespace

InProcess::InProcess(const Parts& parts, std::function<int64_t()> now_us)
    : parts_(parts), now_us_(std::move(now_us)) {}

uint64_t InProcess::EarlierSession(pid_t pid, const ipc::Hello& hello) {
  for (const uint64_t id : parts_.sessions->Ids()) {
    Session* const session = parts_.sessions->Find(id);
    if (session->link == this && session->record.pid == pid) parts_.lifecycle->Remove(session);
  }
  const uint64_t wished_id = hello.session_id;
  if (wished_id == 0) return 0;
  const SessionProof proof{wished_id, static_cast<uint64_t>(pid)};
  if (!parts_.seal->Is(hello.session_seal, kProofPurpose, std::as_bytes(std::span(&proof, 1)))) {
    spdlog::warn("pid {} says that it was session {}, without its seal: it is a new one", pid,
                 wished_id);
    return 0;
  }
  return parts_.sessions->Find(wished_id) == nullptr ? wished_id : parts_.sessions->NewId();
}

bool InProcess::Welcome(const Session& session) {
  ipc::Welcome welcome;
  welcome.session_id = session.record.session_id;
  welcome.device_count = parts_.children->keeper().description.device_count;
  welcome.tables = ipc::OwnTables();
  const SessionProof proof{welcome.session_id, static_cast<uint64_t>(session.record.pid)};
  welcome.session_seal = parts_.seal->Of(kProofPurpose, std::as_bytes(std::span(&proof, 1)));
  const int fds[] = {session.fds.file.get()};
  return session.socket.valid() &&
         ipc::SendPacket(session.socket.get(), BytesOf(welcome), fds).ok();
}

void InProcess::Begin(Session* session) {
  const uint64_t id = session->record.session_id;
  if (const absl::Status made = MakePage(session); !made.ok()) {
    parts_.lifecycle->Refuse(session, CUDA_ERROR_OPERATING_SYSTEM, std::string(made.message()));
    return;
  }
  parts_.lifecycle->Transition(session, Phase::kRunning);
  session->progress_us = now_us_();  // its page can't say more than the time since
  if (!Welcome(*session)) {
    parts_.lifecycle->Remove(session);
    return;
  }
  spdlog::info("session {}: {} (pid {}) in-process", id, session->record.program,
               session->record.pid);
}

// A program can't hold memory that other sessions hold: its claim is cut to the rest of the device.
uint64_t InProcess::BelievedBytes(const Session& session) const {
  const KeeperState& keeper = parts_.children->keeper();
  const uint32_t device = session.record.device;
  HeldClaim claim;
  claim.claimed_bytes = session.claimed_bytes.value_or(0);
  claim.capacity_bytes = keeper.description.devices[device].capacity_bytes;
  claim.used_bytes = keeper.description.devices[device].used_bytes;
  claim.limit_bytes = session.record.job.memory_limit_bytes;
  const wire::Owner owner{wire::OwnerKind::kSession, session.record.session_id};
  for (const wire::Usage& usage : keeper.usages) {
    if (usage.owner == owner && usage.device == device) claim.counted_bytes += usage.bytes;
  }
  return Believed(claim);
}

// The program runs already, so it is admitted without asking the scheduler. How much memory it
// holds comes from the program, and is believed only as far as the device allows.
void InProcess::Adopt(uint64_t id) {
  parts_.children->RefreshUsage([this, id] {
    Session* const session = parts_.sessions->Find(id);
    if (session == nullptr || !session->claimed_bytes.has_value()) return;
    session->record.persistent_bytes = BelievedBytes(*session);
    if (session->record.persistent_bytes != *session->claimed_bytes) {
      spdlog::warn("session {} says that it has {} bytes; it can't have more than {}", id,
                   *session->claimed_bytes, session->record.persistent_bytes);
    }
    session->claimed_bytes.reset();
    Begin(session);
    if (parts_.sessions->Find(id) == nullptr) return;  // it is gone again
    parts_.grants->Adopt(*session);
    OnMemoryCounted(*session);
  });
}

void InProcess::Send(const Session& session, const wire::DaemonToWorker& message) {
  const std::optional<wire::DaemonToProgram> told =
      wire::Redirected<wire::DaemonToProgram>(message);
  if (told.has_value()) SendOwn(session, *told);
}

void InProcess::SendOwn(const Session& session, const wire::DaemonToProgram& message) {
  if (session.phase != Phase::kRunning || !session.socket.valid()) return;
  (void)wire::Send<wire::DaemonToProgram>(session.socket.get(), message);
}

uint32_t InProcess::DeviceMeant(const Session& session, uint32_t device) const {
  const ipc::SchedulingTerms& terms = session.record.job.scheduling;
  return device < terms.device_count ? terms.devices[device] : device;
}

void InProcess::OnMemoryCounted(const Session& session) {
  const scheduler::Session* const known = parts_.scheduler->state().Find(session.record.session_id);
  if (known == nullptr) return;
  parts_.children->TellKeeper(wire::CountOutside{{wire::OwnerKind::kSession, known->id},
                                                 static_cast<uint64_t>(known->persistent_bytes),
                                                 known->about.device});
}

bool InProcess::Receive(Session* session) {
  const absl::StatusOr<wire::Received<wire::ProgramToDaemon>> received =
      wire::Receive<wire::ProgramToDaemon>(session->socket.get(), 0);
  if (absl::IsDeadlineExceeded(received.status())) return true;
  if (received.ok()) {
    OnMessage(*session, received->message);
    return true;
  }
  if (absl::IsInvalidArgument(received.status()))
    spdlog::warn("session {} says what no program says", session->record.session_id);
  OnAway(session);
  return true;
}

void InProcess::OnMessage(const Session& session, const wire::ProgramToDaemon& message) {
  std::visit(ipc::Overloaded{
                 [&](const wire::GetMemory& memory) {
                   AnswerMemory(session.record.session_id, DeviceMeant(session, memory.device));
                 },
                 [&](const wire::Switched& switched) {
                   if (IsOwnExit(switched, session)) parts_.grants->OnReport(0, switched);
                 },
                 [&](const wire::GateReport& report) {
                   if (IsOwn(report, session)) parts_.grants->OnReport(report);
                 },
                 [&](const wire::MemoryNeeded& needed) {
                   if (IsOwn(needed, session)) parts_.grants->OnReport(needed);
                 },
                 [&](const wire::MemoryFreed& freed) {
                   if (IsOwn(freed, session)) parts_.grants->OnReport(freed);
                 },
             },
             message);
}

// The program has ended, or it runs on without lanewayd until it says hello again.
void InProcess::OnAway(Session* session) {
  const uint64_t id = session->record.session_id;
  parts_.lifecycle->CloseSocket(session);
  if (ipc::ProcessEnded(session->fds.process.get())) return;
  parts_.scheduler->Apply(
      scheduler::Switched{static_cast<scheduler::LaneId>(session->lane), id, 0});
  parts_.scheduler->Apply(scheduler::Idle{id, true});
  parts_.loop->After(kComeBackUs, [this, id] {
    Session* const still = parts_.sessions->Find(id);
    if (still != nullptr && still->link == this && !still->socket.valid())
      parts_.lifecycle->Remove(still);
  });
}

// The device's free memory, within the limit of the session's job.
void InProcess::AnswerMemory(uint64_t id, uint32_t device) {
  parts_.children->RefreshUsage([this, id, device] {
    const Session* const session = parts_.sessions->Find(id);
    const scheduler::Session* const known = parts_.scheduler->state().Find(id);
    const wire::KeeperReady& keeper = parts_.children->keeper().description;
    wire::MemoryReply reply;
    if (session == nullptr || known == nullptr) return;
    if (device < keeper.device_count) {
      const uint64_t capacity = keeper.devices[device].capacity_bytes;
      const uint64_t limit = static_cast<uint64_t>(known->about.limit_bytes);
      const uint64_t own = static_cast<uint64_t>(known->persistent_bytes);
      reply.total_bytes = limit == 0 ? capacity : std::min(capacity, limit);
      reply.free_bytes = capacity - std::min(capacity, keeper.devices[device].used_bytes);
      reply.free_bytes =
          std::min(reply.free_bytes, reply.total_bytes - std::min(reply.total_bytes, own));
    }
    SendOwn(*session, reply);
  });
}

void InProcess::OnKeeperReplaced() {
  for (const std::pair<const uint64_t, Session>& entry : parts_.sessions->all()) {
    if (entry.second.link == this) OnMemoryCounted(entry.second);
  }
}

}  // namespace control
