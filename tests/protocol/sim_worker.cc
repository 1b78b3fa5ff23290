#include "tests/protocol/sim_worker.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "ipc/overloaded.h"
#include "tests/protocol/say.h"

namespace protocol {
namespace {

namespace wire = ipc::control;

}  // namespace

SimWorker::SimWorker(Scene* scene, SimKeeper* keeper, SimDevice* device, uint32_t number, bool own,
                     std::map<uint64_t, uint64_t>* tags)
    : scene_(scene),
      device_(*device),
      number_(number),
      own_(own),
      tags_(tags),
      extents_(keeper, number),
      board_([this](const wire::WorkerToDaemon& message) { outbox_.push_back(message); },
             &VirtualUs),
      lanes_(&environment_) {
  environment_.driver = &device_.worker_driver();
  environment_.extents = &extents_;
  environment_.board = &board_;
  environment_.daemon = this;
  environment_.lanes = &lanes_;
  board_.SetDaemon(false);
}

// Nothing is given back. Gates still speak to the outbox as they go.
SimWorker::~SimWorker() {
  for (const std::pair<const uint64_t, wire::SessionRecord>& entry : records_) {
    const CUdeviceptr base = SlotAddress(entry.second.slot);
    device_.Unmap(base, base + ipc::limits::kSlotBytes);
  }
  sessions_.clear();
}

// --- daemons -------------------------------------------------------------------------------------

void SimWorker::SetDaemon(bool present) {
  daemon_ = present ? ++daemons_ : 0;
  board_.SetDaemon(present);
  if (present && daemons_ > 1) lanes_.OnChanged(0);
}

void SimWorker::Connect(std::shared_ptr<Connection> connection, bool greets) {
  connections_.push_back(std::move(connection));
  if (!greets) return;
  Greet(connections_.back().get());
  SetDaemon(true);
}

void SimWorker::Greet(Connection* connection) {
  wire::WorkerReady ready;
  ready.worker = number_;
  ready.own = own_ ? 1 : 0;
  connection->to_daemon.push_back(ready);
}

void SimWorker::Post(const wire::WorkerToDaemon& message) {
  board_.FlushReports();
  outbox_.push_back(message);
}

void SimWorker::FlushOutbox() {
  for (const wire::WorkerToDaemon& message : std::exchange(outbox_, {})) {
    scene_->Change();
    for (const std::shared_ptr<Connection>& connection : connections_) {
      if (!connection->daemon_gone) connection->to_daemon.push_back(message);
    }
  }
}

// Of this connection: its next message, or its end. False: neither.
bool SimWorker::Hear(size_t index) {
  const std::shared_ptr<Connection> connection = connections_[index];
  if (!connection->to_worker.empty()) {
    const wire::DaemonToWorker message = std::move(connection->to_worker.front());
    connection->to_worker.pop_front();
    scene_->Change();
    if (scene_->verbose) Say(true, number_, message);
    Handle(connection.get(), message);
    return true;
  }
  if (!connection->daemon_gone) return false;
  std::erase(connections_, connection);
  scene_->Change();
  if (connections_.empty()) SetDaemon(false);
  return true;
}

// Before anything else: the loop waits until all is handed over.
bool SimWorker::FollowKeeper() {
  if (!follows_keeper_) return false;
  scene_->Change();
  if (extents_.HandOverOne()) return true;
  follows_keeper_ = false;
  lanes_.OnChanged(0);
  return true;
}

bool SimWorker::Loop() {
  if (FollowKeeper()) return true;
  if (NoteEnds()) return true;
  if (!outbox_.empty() && scene_->dice.OneIn(2)) {
    FlushOutbox();
    return true;
  }
  const std::vector<wire::ResizeLane> resizes = std::exchange(resizes_, {});
  for (const wire::ResizeLane& size : resizes) {
    if (!TryResize(size)) resizes_.push_back(size);
  }
  if (!connections_.empty()) {
    const size_t first = scene_->dice.Below(connections_.size());
    for (size_t i = 0; i < connections_.size(); ++i) {
      if (Hear((first + i) % connections_.size())) return true;
    }
  }
  if (outbox_.empty()) return resizes.size() != resizes_.size();
  FlushOutbox();
  return true;
}

void SimWorker::AnswerQuery(Connection* asks) {
  for (bool heard = true; heard;) {
    heard = false;
    for (size_t i = 0; i < connections_.size() && !heard; ++i)
      heard = connections_[i].get() != asks && Hear(i);
  }
  FlushOutbox();
  SetDaemon(true);
  Greet(asks);
  for (std::pair<const uint64_t, wire::SessionRecord>& entry : records_) {
    wire::SessionRecord& record = entry.second;
    if (const SimSession* const session = Find(entry.first)) {
      const worker::SessionSnapshot snapshot = session->Snapshot();
      record.persistent_bytes = snapshot.persistent_bytes;
      record.lane_bytes = snapshot.lane_bytes;
      record.place = snapshot.place;
    }
    const worker::GateView gate = board_.View(entry.first);
    record.lane = gate.lane;
    record.turn = gate.turn;
    record.wants = gate.wants;
    asks->to_daemon.push_back(record);
  }
  asks->to_daemon.push_back(wire::ListEnd{});
}

// --- what a daemon says --------------------------------------------------------------------------

void SimWorker::Handle(Connection* connection, const wire::DaemonToWorker& message) {
  std::visit(
      ipc::Overloaded{
          [&](const wire::Query&) { AnswerQuery(connection); },
          [&](const wire::Stop&) { stopping_ = true; },
          [&](const wire::KeeperChanged&) {
            extents_.BeginHandOver();
            follows_keeper_ = true;
          },
          [&](const wire::AttachSession& attach) { Attach(attach.session); },
          [&](const wire::DetachSession& detach) {
            if (SimSession* const session = Find(detach.session_id)) session->Stop();
          },
          [&](const wire::ReleaseSession& release) {
            if (SimSession* const session = Find(release.session_id)) session->Release();
          },
          [&](const wire::SessionRecord& record) {
            const std::map<uint64_t, wire::SessionRecord>::iterator found =
                records_.find(record.session_id);
            if (found == records_.end()) return;
            found->second.pause = record.pause;
            board_.SetPaused(record.session_id, record.pause != scheduler::Pause::kNone);
          },
          [&](const wire::AssignLane& lane) {
            board_.SetLane(lane.session_id, lane.lane);
            Decide(lane.session_id, lane);
          },
          [&](const wire::ResizeLane& size) {
            if (!TryResize(size)) resizes_.push_back(size);
          },
          [&](const wire::Grant& grant) { board_.Grant(grant.session_id, grant.lane); },
          [&](const wire::Revoke& revoke) { board_.Revoke(revoke.session_id); },
          [&](const wire::Successors& next) {
            board_.SetSuccessors(next.lane, {next.session_ids, next.session_ids + next.count});
          },
          [&](const wire::Swap& swap) { Decide(swap.session_id, swap); },
          [&](const wire::MemoryAnswer& answer) { Decide(answer.session_id, answer); },
          [&](const wire::LaneChanged& changed) { lanes_.OnChanged(changed.lane); },
          [&](const wire::LanePolicy& policy) { board_.SetPolicy(policy); },
      },
      message);
}

SimSession* SimWorker::Find(uint64_t session) {
  const std::map<uint64_t, std::unique_ptr<SimSession>>::iterator found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : found->second.get();
}

void SimWorker::Decide(uint64_t id, const worker::Decision& decision) {
  SimSession* const session = Find(id);
  if (session != nullptr && !session->ended()) session->Obey(decision);
}

bool SimWorker::OwesShrink(uint64_t lane) const {
  return std::any_of(resizes_.begin(), resizes_.end(),
                     [lane](const wire::ResizeLane& order) { return order.lane == lane; });
}

bool SimWorker::SpeaksOf(pid_t pid) const {
  return std::any_of(connections_.begin(), connections_.end(), [pid](const auto& connection) {
    const std::deque<wire::DaemonToWorker>& orders = connection->to_worker;
    const std::deque<wire::WorkerToDaemon>& reports = connection->to_daemon;
    return std::any_of(orders.begin(), orders.end(),
                       [pid](const wire::DaemonToWorker& order) {
                         const auto* const attach = std::get_if<wire::AttachSession>(&order);
                         return attach != nullptr && attach->session.pid == pid;
                       }) ||
           std::any_of(reports.begin(), reports.end(), [pid](const wire::WorkerToDaemon& report) {
             const auto* const record = std::get_if<wire::SessionRecord>(&report);
             return record != nullptr && record->pid == pid;
           });
  });
}

bool SimWorker::TryResize(const wire::ResizeLane& size) {
  const worker::LaneTable::View view = lanes_.Look(size.lane);
  const uint64_t have =
      view.parts.empty() ? 0 : view.parts.back().address + view.parts.back().extent.bytes;
  const bool busy = view.holder != 0 || (size.bytes == 0 && view.members != 0);
  const bool shrinks = have > size.bytes || view.members == 0;
  if ((have > size.bytes && busy) || (shrinks && !lanes_.Shrink(size.lane, size.bytes)))
    return false;
  scene_->Change();
  if (size.bytes == 0) board_.ForgetLane(size.lane);
  Post(wire::LaneShrunk{size.lane, size.bytes});
  return true;
}

// --- sessions ------------------------------------------------------------------------------------

void SimWorker::Attach(const wire::SessionRecord& record) {
  Program* const program = scene_->Find(record.pid);
  if (program == nullptr || sessions_.count(record.session_id) != 0) {
    Post(wire::Attached{record.session_id, 0, CUDA_ERROR_OPERATING_SYSTEM});
    Post(wire::SessionEnded{record.session_id});
    return;
  }
  board_.SetPaused(record.session_id, record.pause != scheduler::Pause::kNone);
  std::unique_ptr<SimSession> session =
      std::make_unique<SimSession>(scene_, &environment_, record, program, tags_);
  wire::Attached attached;
  attached.session_id = record.session_id;
  if (record.generation != 0 && !session->Restore()) {
    attached.result = CUDA_ERROR_MPS_RPC_FAILURE;
    session->Stop();
  }
  attached.persistent_bytes = session->Snapshot().persistent_bytes;
  records_[record.session_id] = record;
  sessions_[record.session_id] = std::move(session);
  Post(attached);
}

// Of one session: that its program has ended, or that its thread has.
bool SimWorker::NoteEnds() {
  for (const std::pair<const uint64_t, std::unique_ptr<SimSession>>& entry : sessions_) {
    SimSession* const session = entry.second.get();
    if (!session->program()->alive() && (scene_->calm || scene_->dice.OneIn(3))) session->Stop();
    if (!session->ended()) continue;
    const uint64_t id = entry.first;
    scene_->Change();
    if (session->released()) {
      Post(wire::SessionReleased{id});
    } else {
      Post(wire::SessionEnded{id});
    }
    board_.SetPaused(id, false);
    records_.erase(id);
    sessions_.erase(id);
    return true;
  }
  return false;
}

SimSession* SimWorker::Any() {
  if (sessions_.empty()) return nullptr;
  std::map<uint64_t, std::unique_ptr<SimSession>>::iterator at = sessions_.begin();
  std::advance(at, scene_->dice.Below(sessions_.size()));
  return at->second.get();
}

bool SimWorker::StepSession() {
  SimSession* const session = Any();
  if (session != nullptr) session->Step();
  return session != nullptr;
}

bool SimWorker::FinishDeviceWork() {
  SimSession* const session = Any();
  return session != nullptr && session->lane().FinishDeviceWork();
}

bool SimWorker::StepAll() {
  for (const std::pair<const uint64_t, std::unique_ptr<SimSession>>& entry : sessions_) {
    while (entry.second->lane().FinishDeviceWork()) {
    }
    entry.second->Step();
  }
  return !sessions_.empty();
}

}  // namespace protocol
