#include <algorithm>

#include "tests/protocol/sim_daemon.h"

namespace protocol {
namespace {

namespace wire = ipc::control;

}  // namespace

Client* DaemonCore::Find(uint64_t session) {
  const std::map<uint64_t, Client>::iterator found = clients.find(session);
  return found == clients.end() ? nullptr : &found->second;
}

const Child* DaemonCore::Ready(uint32_t worker) const {
  const std::map<uint32_t, Child>::const_iterator found = children.find(worker);
  return found == children.end() || !found->second.ready ? nullptr : &found->second;
}

bool DaemonCore::Send(uint32_t worker, const wire::DaemonToWorker& message) {
  const std::map<uint32_t, Child>::iterator found = children.find(worker);
  if (found == children.end() || found->second.connection->worker_gone) return false;
  found->second.connection->to_worker.push_back(message);
  scene->Change();
  return true;
}

void DaemonCore::SendTo(const Client& client, const wire::DaemonToWorker& message) {
  if (client.stage == Stage::kRunning) (void)Send(client.worker, message);
}

void SimLanes::TellShared() {
  std::map<uint64_t, std::set<uint32_t>> now;
  for (const std::pair<const uint64_t, Client>& entry : core_.clients) {
    // Who ends may hold the lane still.
    const bool uses = entry.second.stage == Stage::kRunning || entry.second.stage == Stage::kEnding;
    if (entry.second.lane != 0 && uses) now[entry.second.lane].insert(entry.second.worker);
  }
  for (const std::pair<const uint64_t, std::set<uint32_t>>& entry : now) {
    const std::set<uint32_t>& before = workers_[entry.first];
    if (entry.second == before || (entry.second.size() < 2 && before.size() < 2)) continue;
    for (const uint32_t worker : entry.second)
      (void)core_.Send(worker, wire::LanePolicy{entry.first, 1, entry.second.size() < 2});
  }
  workers_ = std::move(now);
}

void SimLanes::TellAlone() {
  if (!core_.serving) return;  // others are yet to be adopted
  std::pair<uint32_t, uint64_t> now;
  if (core_.clients.size() == 1) {
    const Client& only = core_.clients.begin()->second;
    if (only.stage == Stage::kRunning && only.lane != 0) now = {only.worker, only.lane};
  }
  if (now == alone_) return;
  if (alone_.second != 0) (void)core_.Send(alone_.first, wire::LanePolicy{alone_.second, 1, 1});
  if (now.second != 0) (void)core_.Send(now.first, wire::LanePolicy{now.second, 0, 1});
  alone_ = now;
}

std::set<uint32_t> SimLanes::WorkersOf(uint64_t lane) const {
  std::set<uint32_t> workers;
  for (const std::pair<const uint64_t, Client>& entry : core_.clients) {
    if (entry.second.lane == lane && entry.second.stage == Stage::kRunning)
      workers.insert(entry.second.worker);
  }
  return workers;
}

void SimLanes::Publish(const scheduler::Successors& successors) {
  for (const uint32_t worker : WorkersOf(successors.lane)) {
    wire::Successors message;
    message.lane = successors.lane;
    for (const scheduler::SessionId id : successors.sessions) {
      const Client* const next = core_.Find(id);
      const bool foreign = next != nullptr && next->worker != worker;
      if (foreign || message.count == wire::kSuccessorsMax) break;
      message.session_ids[message.count++] = id;
    }
    (void)core_.Send(worker, message);
  }
}

// --- lanes give memory back ----------------------------------------------------------------------

void SimLanes::Resize(const scheduler::ResizeLane& resize) {
  const std::unordered_map<scheduler::LaneId, scheduler::Lane>::const_iterator lane =
      core_.state.lanes.find(resize.lane);
  const bool grows = lane != core_.state.lanes.end() && lane->second.shrinking_to != resize.bytes;
  if (!grows) TellToShrink({resize.lane, static_cast<uint64_t>(resize.bytes)});
}

void SimLanes::TellToShrink(const control::Shrinking::Order& order) {
  const wire::ResizeLane message{order.lane, order.bytes};
  std::set<uint32_t> told = WorkersOf(order.lane);
  for (const uint32_t worker : told) (void)core_.Send(worker, message);
  if (told.empty()) {
    for (const std::pair<const uint32_t, Child>& entry : core_.children) {
      if (core_.Send(entry.first, message)) told.insert(entry.first);
    }
    const bool any_ready = std::any_of(told.begin(), told.end(), [this](uint32_t worker) {
      return core_.Ready(worker) != nullptr;
    });
    if (any_ready)
      std::erase_if(told, [this](uint32_t worker) { return core_.Ready(worker) == nullptr; });
  }
  shrinking_.Tell(order, told);
  if (!told.empty()) return;
  const bool awaited =
      std::any_of(core_.clients.begin(), core_.clients.end(),
                  [&order](const std::pair<const uint64_t, Client>& entry) {
                    const Stage stage = entry.second.stage;
                    return entry.second.lane == order.lane &&
                           (stage == Stage::kWaiting || stage == Stage::kAttaching ||
                            stage == Stage::kMoving || stage == Stage::kEntering);
                  });
  if (awaited && order.bytes != 0) return;
  shrinking_.Forget(order.lane);
  Release(order.lane);
  core_.happen(scheduler::LaneShrunk{static_cast<scheduler::LaneId>(order.lane),
                                     static_cast<int64_t>(order.bytes)});
}

// Sessions may have given some of a lane back while no daemon was there.
void SimLanes::ShrinkToCounted(const std::vector<wire::UsageList>& usages) {
  std::map<uint64_t, uint64_t> kept;
  for (const wire::UsageList& list : usages) {
    for (uint64_t i = 0; i < list.count; ++i) {
      const wire::Usage& usage = list.usages[i];
      if (usage.owner.kind == wire::OwnerKind::kLane) kept[usage.owner.id] += usage.bytes;
    }
  }
  for (const std::pair<const uint64_t, uint64_t>& lane : kept) {
    const std::unordered_map<scheduler::LaneId, scheduler::Lane>::const_iterator counted =
        core_.state.lanes.find(static_cast<scheduler::LaneId>(lane.first));
    if (wire::IsOwnLane(lane.first) || counted == core_.state.lanes.end()) continue;
    if (counted->second.shrinking_to >= 0) continue;
    const uint64_t bytes = static_cast<uint64_t>(counted->second.bytes);
    if (lane.second > bytes) TellToShrink({lane.first, bytes});
  }
}

void SimLanes::RecordShrink(uint32_t worker, const wire::LaneShrunk& shrunk) {
  if (!shrinking_.Answer(worker, {shrunk.lane, shrunk.bytes})) return;
  if (shrunk.bytes == 0 && WorkersOf(shrunk.lane).empty()) Release(shrunk.lane);
  core_.happen(scheduler::LaneShrunk{static_cast<scheduler::LaneId>(shrunk.lane),
                                     static_cast<int64_t>(shrunk.bytes)});
}

void SimLanes::TellUntoldShrinks() {
  for (const control::Shrinking::Order& order : shrinking_.Untold()) TellToShrink(order);
}

void SimLanes::TellAnew(uint32_t lost_worker) {
  for (const control::Shrinking::Order& order : shrinking_.Lose(lost_worker)) TellToShrink(order);
}

void SimLanes::Release(uint64_t lane) {
  core_.keeper->Post(wire::ReleaseOwner{{wire::OwnerKind::kLane, lane}});
}

void SimLanes::ReleaseIfEnded(uint64_t lane) {
  if (!core_.serving || lane == 0 || !WorkersOf(lane).empty()) return;
  if (core_.state.lanes.count(static_cast<scheduler::LaneId>(lane)) != 0) return;
  Release(lane);
}

void SimLanes::ReleaseLanesOf(uint64_t session) {
  for (std::map<uint64_t, std::set<uint64_t>>::iterator it = guests_.begin();
       it != guests_.end();) {
    const std::map<uint64_t, std::set<uint64_t>>::iterator entry = it++;
    entry->second.erase(session);
    const bool ended = core_.state.lanes.count(static_cast<scheduler::LaneId>(entry->first)) == 0;
    if (!entry->second.empty() || (!ended && !core_.clients.empty())) continue;
    Release(entry->first);
    guests_.erase(entry);
  }
}

}  // namespace protocol
