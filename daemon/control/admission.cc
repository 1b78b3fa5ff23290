#include "ipc/calls/vendor.h"

#include "daemon/control/admission.h"

#include <spdlog/spdlog.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/control/choose_devices.h"
#include "daemon/control/hello_check.h"
#include "ipc/socket.h"

namespace control {
namespace {

// The order of an earlier lanewayd to move the session's memory that its worker has not answered.
std::optional<ipc::control::Swap> OpenOrder(const ipc::control::SessionRecord& record) {
  using scheduler::Residence;
  const Residence residence = record.place.residence;
  if (residence == Residence::kDevice || residence == Residence::kHost) return std::nullopt;
  return ipc::control::Swap{record.session_id, residence == Residence::kGoingOut,
                            record.place.lane_saved};
}

}  // namespace

SessionLink* Admission::LinkOf(ipc::Mode mode) const {
  if (mode == ipc::Mode::kInProcess) return in_process_;
  return worker_link_;
}

void Admission::Create(const ipc::Hello& hello, const ipc::Peer& peer, ipc::UniqueFd socket,
                       ipc::UniqueFd pidfd) {
  if (!core_->scheduler.serving()) {
    waiting_.push_back({hello, peer, std::move(socket), std::move(pidfd)});
    return;
  }
  ipc::control::SessionRecord record;
  SessionLink* const link = LinkOf(hello.mode);
  const uint64_t goes_on = link->EarlierSession(peer.pid, hello);
  record.session_id = goes_on != 0 ? goes_on : core_->sessions.NewId();
  record.job = JobOf(hello.job);
  record.pid = peer.pid;
  record.uid = peer.uid;
  record.transport = hello.transport;
  record.tables = ipc::CommonTables(hello.tables);
  ipc::control::SetText(record.program, hello.program);
  record.device = FirstDeviceOf(record.job.scheduling);
  record.contained = hello.mode == ipc::Mode::kContained ||
                             core_->placement.IsQuarantined(record.uid, record.program)
                         ? 1
                         : 0;
  Session* const session = core_->sessions.Add(record, link);
  session->socket = std::move(socket);
  session->fds.process = std::move(pidfd);
  if (goes_on != 0) session->claimed_bytes = hello.held_bytes;
  Watch(*session);
  core_->observers.Begin(*session);
  NoticeEnding();  // this program may have ended, too
  if (const Session* const still = core_->sessions.Find(record.session_id)) Enlist(*still);
}

void Admission::Enlist(const Session& session) {
  if (session.claimed_bytes.has_value()) {
    in_process_->Adopt(session.record.session_id);
  } else {
    core_->scheduler.Apply(core_->grants.Describe(session));
  }
}

void Admission::EnlistWaiting() {
  for (WaitingHello& one : std::exchange(waiting_, {}))
    Create(one.hello, one.peer, std::move(one.socket), std::move(one.pidfd));
}

void Admission::RefuseWaiting(const std::string& sentence) {
  ipc::Welcome welcome;
  control::Refuse(&welcome, CUDA_ERROR_MPS_CONNECTION_FAILED, sentence);
  for (const WaitingHello& one : std::exchange(waiting_, {}))
    (void)ipc::SendPacket(one.socket.get(), BytesOf(welcome));
}

// A program without a valid ticket gets a job of its own, without a limit.
ipc::JobTerms Admission::JobOf(const ipc::JobTicket& ticket) {
  if (const std::optional<ipc::JobTerms> joined = core_->jobs.Join(ticket)) return *joined;
  if (ticket.terms.id != 0)
    spdlog::warn("a ticket of job {} is not of this runtime directory", ticket.terms.number);
  ipc::JobTerms own;
  own.number = core_->jobs.NewNumber();
  return own;
}

void Admission::NoticeEnding() {
  std::vector<uint64_t> ended;
  for (const std::pair<const uint64_t, Session>& entry : core_->sessions.all()) {
    if (entry.second.phase != Phase::kEnding && ipc::ProcessEnded(entry.second.fds.process.get())) {
      ended.push_back(entry.first);
    }
  }
  for (const uint64_t id : ended) OnProcessEnded(id);
}

void Admission::Watch(const Session& session) {
  const uint64_t id = session.record.session_id;
  core_->loop->Watch(session.fds.process.get(), [this, id] { OnProcessEnded(id); });
  if (session.socket.valid())
    core_->loop->Watch(session.socket.get(), [this, id] { OnSocket(id); });
}

void Admission::Adopt(uint32_t worker, const ipc::control::SessionRecord& record,
                      std::vector<ipc::UniqueFd>* fds) {
  std::optional<common::SessionFds> received = common::SessionFds::FromMessage(fds);
  if (!received.has_value() || core_->sessions.Find(record.session_id) != nullptr) return;
  Session* const session = core_->sessions.Add(record, worker_link_);
  core_->jobs.Adopt(record.job);
  core_->lifecycle.Transition(session, Phase::kRunning);
  session->worker = worker;
  session->has_slot = true;
  session->fds = std::move(*received);
  session->progress = common::ProgressMap(session->fds.swap.get());
  session->page = common::SessionPageMap(session->fds.file.get());
  if (record.contained != 0) session->own_worker = worker;
  core_->observers.Begin(*session);
  // It has its place already: the scheduler only learns of it.
  session->lane = record.lane;
  if (record.lane != 0) core_->lanes.AddGuest(record.lane, record.session_id);
  session->lane_bytes = record.lane_bytes;
  session->swap = OpenOrder(record);
  Watch(*session);
  core_->grants.Adopt(*session);
}

// The keeper hears of an owner's end from lanewayd, and of an owner's memory from the workers: the
// end of one owner can arrive after memory was made for the next owner of the same number. Lanes
// are numbered by the scheduler, and sessions by their table.
void Admission::NoteUsedNumbers() {
  for (const ipc::control::Usage& usage : core_->children->keeper().usages) {
    if (const uint64_t session = ipc::control::SessionOf(usage.owner); session != 0) {
      core_->sessions.NoteUsed(session);
    } else {
      core_->scheduler.Apply(
          scheduler::LaneFound{static_cast<scheduler::LaneId>(usage.owner.id), 0});
    }
  }
}

void Admission::Execute(const scheduler::Admit& admit) {
  if (Session* const session = core_->sessions.Find(admit.session)) session->link->Begin(session);
}

void Admission::Execute(const scheduler::Queue& queue) {
  spdlog::info("session {} {}", queue.session, queue.reason);
  if (const Session* const session = core_->sessions.Find(queue.session))
    TellQueued(*session, queue.reason);
}

void Admission::Execute(const scheduler::Reject& reject) {
  Session* const session = core_->sessions.Find(reject.session);
  if (session == nullptr) return;
  core_->lifecycle.Refuse(
      session, CUDA_ERROR_MPS_MAX_CLIENTS_REACHED,
      absl::StrCat(reject.reason, "; end a program or wait for one (laneway ps lists them)"));
}

void Admission::OnSocket(uint64_t id) {
  Session* const session = core_->sessions.Find(id);
  if (session == nullptr || !session->socket.valid()) return;
  if (session->phase == Phase::kRunning && session->link->Receive(session)) return;
  const absl::StatusOr<ipc::Packet> packet = ipc::ReceivePacket(session->socket.get(), 0);
  if (absl::IsDeadlineExceeded(packet.status())) return;
  if (packet.ok()) return;  // no program sends anything between its hello and its welcome
  core_->lifecycle.CloseSocket(session);
  // Before the welcome it means that the program gave up; after it, nothing.
  if (session->phase == Phase::kQueued || session->phase == Phase::kWaiting)
    core_->lifecycle.Remove(session);
}

void Admission::OnProcessEnded(uint64_t id) {
  Session* const session = core_->sessions.Find(id);
  if (session == nullptr || !ipc::ProcessEnded(session->fds.process.get())) return;
  core_->loop->Unwatch(session->fds.process.get());
  core_->lifecycle.CloseSocket(session);
  switch (session->phase) {
    case Phase::kAttaching:
    case Phase::kEntering:
    case Phase::kRunning:
      // A worker watches the program, too, and reports SessionEnded. A program in-process was its
      // own worker.
      if (session->worker != 0) {
        core_->lifecycle.Transition(session, Phase::kEnding);
      } else {
        core_->lifecycle.Remove(session);
      }
      break;
    case Phase::kEnding:
      break;
    case Phase::kQueued:
    case Phase::kWaiting:
    case Phase::kMoving:
    case Phase::kLost:
      core_->lifecycle.Remove(session);
      break;
  }
}

}  // namespace control
