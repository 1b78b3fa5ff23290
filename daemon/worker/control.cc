#include "daemon/worker/control.h"

#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/common/child_main.h"
#include "daemon/common/heap.h"
#include "daemon/common/session_fds.h"
#include "daemon/worker/lanes.h"
#include "daemon/worker/stream_owners.h"
#include "ipc/overloaded.h"
#include "ipc/runtime_dir.h"
#include "ipc/socket.h"

namespace worker {
namespace {

constexpr int64_t kLaneRetryUs = 1'000;  // until the last one has left a lane
constexpr int64_t kStopTimeoutUs =
    5'000'000;  // sessions that have not ended by then end with the process

}  // namespace

Control::Control(ControlOptions options, Devices* devices, KeeperExtents* extents)
    : options_(std::move(options)),
      devices_(devices),
      extents_(extents),
      sessions_(&environment_, &loop_, options_.runtime_dir) {}

absl::Status Control::Listen() {
  absl::StatusOr<ipc::UniqueFd> listener =
      ipc::ListenAt(ipc::WorkerSocketPath(options_.runtime_dir, options_.number));
  if (!listener.ok()) return listener.status();
  acceptor_.Listen(
      std::move(*listener), [this](ipc::UniqueFd socket) { AddConnection(std::move(socket)); },
      [](const std::string& sentence) { common::Log("worker", sentence); });
  return absl::OkStatus();
}

ipc::control::WorkerReady Control::Describe() const {
  return {options_.number, getpid(), static_cast<uint32_t>(devices_->contexts().size()),
          options_.own ? 1u : 0u};
}

void Control::Greet(ipc::UniqueFd connection) {
  if (!ipc::control::Send<ipc::control::WorkerToDaemon>(connection.get(), Describe()).ok()) return;
  AddConnection(std::move(connection));
  SetDaemon(true);
}

void Control::SetEnvironment(const Environment& environment) {
  environment_ = environment;
  environment_.board = &board_;
  environment_.daemon = this;
}

// Sessions take turns by themselves while no lanewayd is connected.
void Control::SetDaemon(bool present) {
  daemon_.store(present ? ++daemons_ : 0);
  board_.SetDaemon(present);
  // Other workers may have changed lanes while there was no lanewayd to pass that on.
  if (present && daemons_ > 1 && environment_.lanes != nullptr) environment_.lanes->OnChanged(0);
}

void Control::Run() {
  devices_->Watch([this](CUresult code) { OnPoisoned(0, code, ""); });
  if (Unneeded()) ArmLinger();
  loop_.Run();
  unlink(ipc::WorkerSocketPath(options_.runtime_dir, options_.number).c_str());
}

// --- connections ---------------------------------------------------------------------------------

void Control::AddConnection(ipc::UniqueFd socket) {
  const absl::StatusOr<ipc::Peer> peer = ipc::PeerOf(socket.get());
  if (!peer.ok() || (peer->uid != geteuid() && peer->uid != 0)) return;
  const int fd = socket.get();
  connections_[fd] = std::move(socket);
  loop_.Watch(fd, [this, fd] { (void)hearing_.Hear(fd); });
  if (linger_timer_ != 0) loop_.Cancel(std::exchange(linger_timer_, 0));
}

void Control::DropConnection(int fd) {
  loop_.Unwatch(fd);
  connections_.erase(fd);
  if (connections_.empty()) SetDaemon(false);
  if (Unneeded()) ArmLinger();
}

void Control::ArmLinger() {
  if (linger_timer_ != 0) loop_.Cancel(linger_timer_);
  linger_timer_ = loop_.After(options_.linger_s * 1'000'000, [this] {
    linger_timer_ = 0;
    if (!Unneeded()) return;
    common::Log("worker", "no daemon and no session for a while; exiting");
    loop_.Quit();
  });
}

bool Control::Hear(int fd) {
  if (connections_.count(fd) == 0) return false;
  absl::StatusOr<ipc::control::Received<ipc::control::DaemonToWorker>> received =
      ipc::control::Receive<ipc::control::DaemonToWorker>(fd, 0);
  if (absl::IsDeadlineExceeded(received.status())) return false;
  if (!received.ok()) {
    common::Log("worker",
                absl::StrCat("daemon connection: ", std::string(received.status().message())));
    DropConnection(fd);
    return false;
  }
  Handle(fd, &*received);
  return true;
}

void Control::Handle(int fd, ipc::control::Received<ipc::control::DaemonToWorker>* received) {
  namespace wire = ipc::control;
  LaneTable* const lanes = environment_.lanes;
  std::visit(
      ipc::Overloaded{
          [&](const wire::Query&) { AnswerQuery(fd); },
          [&](const wire::Stop&) { StopAll(); },
          [&](const wire::KeeperChanged&) { FollowKeeper(); },
          [&](const wire::AttachSession& attach) { Attach(attach.session, &received->fds); },
          [&](const wire::DetachSession& detach) { sessions_.Stop(detach.session_id); },
          [&](const wire::ReleaseSession& release) { sessions_.Release(release.session_id); },
          [&](const wire::SessionRecord& record) { ChangeTerms(record); },
          [&](const wire::AssignLane& lane) {
            board_.SetLane(lane.session_id, lane.lane);
            sessions_.Decide(lane.session_id, lane);
          },
          [&](const wire::ResizeLane& size) {
            if (lanes != nullptr) ResizeLane(size.lane, size.bytes);
          },
          [&](const wire::Grant& grant) { board_.Grant(grant.session_id, grant.lane); },
          [&](const wire::Revoke& revoke) { board_.Revoke(revoke.session_id); },
          [&](const wire::Successors& next) {
            board_.SetSuccessors(next.lane, {next.session_ids, next.session_ids + next.count});
          },
          [&](const wire::Swap& swap) { sessions_.Decide(swap.session_id, swap); },
          [&](const wire::MemoryAnswer& answer) { sessions_.Decide(answer.session_id, answer); },
          [&](const wire::LaneChanged& changed) {
            if (lanes != nullptr) lanes->OnChanged(changed.lane);
          },
          [&](const wire::LanePolicy& policy) { board_.SetPolicy(policy); },
      },
      received->message);
}

void Control::FollowKeeper() {
  extents_->OnKeeperChanged();
  // The worker gives up the extents that it did not hand over to the new keeper.
  if (environment_.lanes != nullptr) environment_.lanes->OnChanged(0);
}

// A lane grows when a session needs that. Here the lane gives memory back, once no session is
// inside.
void Control::ResizeLane(uint64_t lane, uint64_t bytes) {
  const LaneTable::View view = environment_.lanes->Look(lane);
  const uint64_t have =
      view.parts.empty() ? 0 : view.parts.back().address + view.parts.back().extent.bytes;
  const bool busy = view.holder != 0 || (bytes == 0 && view.members != 0);
  const bool shrinks = have > bytes || view.members == 0;
  if ((have > bytes && busy) || (shrinks && !environment_.lanes->Shrink(lane, bytes))) {
    loop_.After(kLaneRetryUs, [this, lane, bytes] { ResizeLane(lane, bytes); });
    return;
  }
  if (bytes == 0) board_.ForgetLane(lane);
  Post(ipc::control::LaneShrunk{lane, bytes});
}

// Takes over the job's terms, the pause, and the device on which the session is counted. The worker
// needs the device only to tell it to the next lanewayd.
void Control::ChangeTerms(const ipc::control::SessionRecord& record) {
  ipc::control::SessionRecord* const known = sessions_.Record(record.session_id);
  if (known == nullptr) return;
  known->job = record.job;
  known->pause = record.pause;
  known->device = record.device;
  board_.SetPaused(record.session_id, record.pause != scheduler::Pause::kNone);
  if (environment_.jobs != nullptr)
    environment_.jobs->SetLimit(record.job.number, record.job.memory_limit_bytes);
}

void Control::AnswerQuery(int fd) {
  using ipc::control::WorkerToDaemon;
  hearing_.HearOthers(connections_);  // what a daemon that is no more has ordered
  OnOutbox();                         // what happened before is told before
  SetDaemon(true);
  (void)ipc::control::Send<WorkerToDaemon>(fd, Describe());
  sessions_.List([this, fd](ipc::control::SessionRecord* record, std::span<const int> fds) {
    const GateView gate = board_.View(record->session_id);
    record->lane = gate.lane;
    record->turn = gate.turn;
    record->wants = gate.wants;
    (void)ipc::control::Send<WorkerToDaemon>(fd, *record, fds);
  });
  (void)ipc::control::Send<WorkerToDaemon>(fd, ipc::control::ListEnd{});
}

void Control::Broadcast(const ipc::control::WorkerToDaemon& message) {
  for (const std::pair<const int, ipc::UniqueFd>& connection : connections_) {
    // Its end is seen by Hear.
    (void)ipc::control::Send<ipc::control::WorkerToDaemon>(connection.first, message);
  }
}

// --- sessions ------------------------------------------------------------------------------------

void Control::Refuse(uint64_t session_id, const char* sentence) {
  ipc::control::Attached refused;
  refused.session_id = session_id;
  refused.result = CUDA_ERROR_OPERATING_SYSTEM;
  ipc::control::SetText(refused.sentence, sentence);
  Broadcast(refused);
  Broadcast(ipc::control::SessionEnded{session_id});
}

void Control::Attach(const ipc::control::SessionRecord& record, std::vector<ipc::UniqueFd>* fds) {
  std::optional<common::SessionFds> received = common::SessionFds::FromMessage(fds);
  if (!received.has_value() || stopping_ || sessions_.Has(record.session_id)) {
    Refuse(record.session_id, "the worker is stopping; start the program again");
    return;
  }
  const uint64_t id = record.session_id;
  devices_->SetNeeded(true);
  board_.SetPaused(id, record.pause != scheduler::Pause::kNone);
  const std::string refusal = sessions_.Attach(record, std::move(*received));
  if (refusal.empty()) return;
  OnGone(id);
  Refuse(id, refusal.c_str());
}

void Control::StopAll() {
  if (std::exchange(stopping_, true)) return;
  sessions_.StopAll("Laneway was stopped while this program was running (laneway stop --force)");
  if (sessions_.empty()) {
    loop_.Quit();
    return;
  }
  loop_.After(kStopTimeoutUs, [this] {
    common::Log("worker", "sessions have not ended in time; exiting without them");
    unlink(ipc::WorkerSocketPath(options_.runtime_dir, options_.number).c_str());
    _exit(0);
  });
}

void Control::Retire(uint64_t session_id) {
  sessions_.Retire(session_id);
  OnGone(session_id);
}

void Control::OnGone(uint64_t session_id) {
  board_.SetPaused(session_id, false);
  common::TrimHeap();
  if (!sessions_.empty()) return;
  devices_->SetNeeded(false);
  if (stopping_) loop_.Quit();
  if (Unneeded()) ArmLinger();
}

void Control::OnOutbox() {
  for (const ipc::control::WorkerToDaemon& message : outbox_.Take()) {
    if (const ipc::control::SessionEnded* ended =
            std::get_if<ipc::control::SessionEnded>(&message)) {
      Retire(ended->session_id);
    } else if (const ipc::control::SessionReleased* released =
                   std::get_if<ipc::control::SessionReleased>(&message)) {
      Retire(released->session_id);
    }
    Broadcast(message);
    if (std::holds_alternative<ipc::control::Poisoned>(message)) {
      common::Log("worker", "the context is poisoned; exiting");
      unlink(ipc::WorkerSocketPath(options_.runtime_dir, options_.number).c_str());
      _exit(kPoisonedExitCode);  // destructors would call a driver that only returns errors
    }
  }
}

void Control::Post(const ipc::control::WorkerToDaemon& message) {
  board_.FlushReports();
  outbox_.Post(message);
}

void Control::OnPoisoned(uint64_t session_id, CUresult code, const std::string& text) {
  poisoned.store(true);
  CUstream stopped = nullptr;
  const std::string driver_words = devices_->FaultText(&stopped);
  if (session_id == 0 && stopped != nullptr && environment_.owners != nullptr)
    session_id = environment_.owners->SessionOf(stopped);
  const std::optional<ipc::control::Poisoned> report =
      sessions_.LoseAtFault(session_id, code, text.empty() ? driver_words : text);
  if (report.has_value()) Post(*report);
}

}  // namespace worker
