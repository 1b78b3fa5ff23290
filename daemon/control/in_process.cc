// Programs that keep a context of their own (`laneway run --mode=in-process`): each is its own
// worker, for one session.
//
// What lanewayd tells a worker about a session, it tells such a program over the socket of its
// hello; what the program has allocated by itself is counted, by the scheduler and at the keeper,
// and can't be moved. A program whose socket ends runs on without us and says hello again.
#include "ipc/calls/vendor.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "daemon/control/daemon.h"
#include "daemon/control/greeting.h"
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

// What an earlier session of this process left: its socket has ended. Returns the number under
// which it goes on; 0: as a new one.
uint64_t Daemon::ForgetEarlier(pid_t pid, const ipc::Hello& hello) {
  for (const uint64_t id : sessions_.Ids()) {
    Session* const session = sessions_.Find(id);
    if (session->in_process && session->record.pid == pid) lifecycle_.Remove(session);
  }
  const uint64_t wished_id = hello.session_id;
  if (wished_id == 0) return 0;
  const SessionProof proof{wished_id, static_cast<uint64_t>(pid)};
  if (!seal_.Is(hello.session_seal, kProofPurpose, std::as_bytes(std::span(&proof, 1)))) {
    spdlog::warn("pid {} says that it was session {}, without its seal: it is a new one", pid,
                 wished_id);
    return 0;
  }
  return sessions_.Find(wished_id) == nullptr ? wished_id : sessions_.NewId();
}

// No calls travel: of the session file only the page is needed.
absl::Status Daemon::OnlyPage(const Session& session) {
  if (session.page.get() == nullptr) return absl::ResourceExhaustedError("mmap; raise ulimit -v");
  (void)fallocate(session.session_fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  ipc::kPageBytes, ipc::kSessionFileBytes - ipc::kPageBytes);
  return absl::OkStatus();
}

bool Daemon::WelcomeProgram(Session* session) {
  ipc::Welcome welcome;
  welcome.session_id = session->record.session_id;
  welcome.device_count = children_->keeper().description.device_count;
  welcome.tables = ipc::OwnTables();
  const SessionProof proof{welcome.session_id, static_cast<uint64_t>(session->record.pid)};
  welcome.session_seal = seal_.Of(kProofPurpose, std::as_bytes(std::span(&proof, 1)));
  const int fds[] = {session->session_fd.get()};
  return session->socket.valid() &&
         ipc::SendPacket(session->socket.get(),
                         {reinterpret_cast<const std::byte*>(&welcome), sizeof welcome}, fds)
             .ok();
}

void Daemon::BeginProgram(Session* session) {
  const uint64_t id = session->record.session_id;
  if (const absl::Status made = MakeFiles(session); !made.ok()) {
    Turn(session, CUDA_ERROR_OPERATING_SYSTEM, std::string(made.message()));
    return;
  }
  lifecycle_.Transition(session, Phase::kRunning);
  session->progress_us = NowUs();  // its page can't say more than the time since
  if (!WelcomeProgram(session)) {
    lifecycle_.Remove(session);
    return;
  }
  spdlog::info("session {}: {} (pid {}) in-process", id, session->record.program,
               session->record.pid);
}

// No more than the device has besides what others hold: it can't have that.
uint64_t Daemon::BelievedBytes(const Session& session) const {
  const KeeperState& keeper = children_->keeper();
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

// It has run for a while: admitted is what runs.
void Daemon::AdoptProgram(uint64_t id) {
  children_->RefreshUsage([this, id] {
    Session* const session = sessions_.Find(id);
    if (session == nullptr || !session->claimed_bytes.has_value()) return;
    session->record.persistent_bytes = BelievedBytes(*session);
    if (session->record.persistent_bytes != *session->claimed_bytes) {
      spdlog::warn("session {} says that it has {} bytes; it can't have more than {}", id,
                   *session->claimed_bytes, session->record.persistent_bytes);
    }
    session->claimed_bytes.reset();
    BeginProgram(session);
    if (sessions_.Find(id) == nullptr) return;  // it is gone again
    AdoptGrants(*session);
    CountOutside(*session);
  });
}

void Daemon::OnProgramMessage(Session* session) {
  const absl::StatusOr<wire::Received<wire::ProgramToDaemon>> received =
      wire::Receive<wire::ProgramToDaemon>(session->socket.get(), 0);
  if (absl::IsDeadlineExceeded(received.status())) return;
  if (received.ok()) {
    HandleProgram(*session, received->message);
    return;
  }
  if (absl::IsInvalidArgument(received.status()))
    spdlog::warn("session {} says what no program says", session->record.session_id);
  OnProgramAway(session);
}

void Daemon::HandleProgram(const Session& session, const wire::ProgramToDaemon& message) {
  std::visit(ipc::Overloaded{
                 [&](const wire::GetMemory& memory) {
                   AnswerMemory(session.record.session_id, DeviceSeenAs(session, memory.device));
                 },
                 [&](const wire::Switched& switched) {
                   if (IsOwnExit(switched, session)) RecordSwitch(switched);
                 },
                 [&](const wire::GateReport& report) {
                   if (IsOwn(report, session)) ApplyGateReport(report);
                 },
                 [&](const wire::MemoryNeeded& needed) {
                   if (IsOwn(needed, session)) RequestMemory(needed);
                 },
                 [&](const wire::MemoryFreed& freed) {
                   if (IsOwn(freed, session)) TakeMemoryBack(freed);
                 },
             },
             message);
}

void Daemon::SendToProgram(const Session& session, const wire::DaemonToProgram& message) {
  if (session.phase != Phase::kRunning || !session.socket.valid()) return;
  (void)wire::Send<wire::DaemonToProgram>(session.socket.get(), message);
}

// It may be gone, or go on by itself until it says hello again.
void Daemon::OnProgramAway(Session* session) {
  const uint64_t id = session->record.session_id;
  lifecycle_.CloseSocket(session);
  if (ipc::ProcessEnded(session->pidfd.get())) return;
  scheduler_.Apply(scheduler::Switched{static_cast<scheduler::LaneId>(session->lane), id, 0});
  scheduler_.Apply(scheduler::Idle{id, true});
  loop_->After(kComeBackUs, [this, id] {
    Session* const still = sessions_.Find(id);
    if (still != nullptr && still->in_process && !still->socket.valid()) lifecycle_.Remove(still);
  });
}

// The device as others see it, within what the session may have.
void Daemon::AnswerMemory(uint64_t id, uint32_t device) {
  children_->RefreshUsage([this, id, device] {
    const Session* const session = sessions_.Find(id);
    const scheduler::Session* const known = scheduler_.state().Find(id);
    const wire::KeeperReady& keeper = children_->keeper().description;
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
    SendToProgram(*session, reply);
  });
}

void Daemon::CountOutside(const Session& session) {
  const scheduler::Session* const known = scheduler_.state().Find(session.record.session_id);
  if (!session.in_process || known == nullptr) return;
  children_->TellKeeper(wire::CountOutside{{wire::OwnerKind::kSession, known->id},
                                           static_cast<uint64_t>(known->persistent_bytes),
                                           known->about.device});
}

void Daemon::OnKeeperReplaced() {
  for (const std::pair<const uint64_t, Session>& entry : sessions_.all()) {
    CountOutside(entry.second);
  }
}

}  // namespace control
