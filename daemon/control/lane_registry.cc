#include "daemon/control/lane_registry.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

namespace control {

namespace wire = ipc::control;

namespace {

scheduler::LaneId IdOf(uint64_t lane) { return static_cast<scheduler::LaneId>(lane); }

}  // namespace

// --- the sessions of a lane ----------------------------------------------------------------------

void LaneRegistry::TellShared() {
  std::map<uint64_t, std::set<uint32_t>> now;
  for (const std::pair<const uint64_t, Session>& entry : parts_.sessions->all()) {
    const Session& session = entry.second;
    // Also a session that comes or ends: it may open the lane, or hold it still.
    const bool there = session.worker != 0 && session.phase != Phase::kLost;
    if (session.lane != 0 && there) now[session.lane].insert(session.worker);
  }
  for (const std::pair<const uint64_t, std::set<uint32_t>>& entry : now) {
    if (entry.second == workers_[entry.first]) continue;
    const bool shared = entry.second.size() > 1;
    for (const uint32_t worker : entry.second) {
      const std::pair<uint64_t, uint32_t> believes{entry.first, worker};
      const bool told = shared || believe_shared_.erase(believes) != 0;
      if (shared) believe_shared_.insert(believes);
      if (told) (void)parts_.children->Send(worker, wire::LanePolicy{entry.first, 1, !shared});
    }
  }
  std::erase_if(believe_shared_, [&](const std::pair<uint64_t, uint32_t>& believes) {
    return now.count(believes.first) == 0 && !Exists(believes.first);
  });
  workers_ = std::move(now);
}

void LaneRegistry::TellAlone() {
  for (const OnlySession::Notice& notice :
       only_session_.Change(PlaceOfOnly(parts_.sessions->all()))) {
    (void)parts_.children->Send(notice.place.worker,
                                wire::LanePolicy{notice.place.lane, !notice.alone, 1});
  }
}

void LaneRegistry::Publish(const scheduler::Successors& successors) const {
  for (const uint32_t worker : WorkersOf(successors.lane)) {
    wire::Successors message;
    message.lane = successors.lane;
    for (const scheduler::SessionId id : successors.sessions) {
      const Session* const next = parts_.sessions->Find(id);
      const bool foreign = next != nullptr && next->worker != worker;
      if (foreign || message.count == wire::kSuccessorsMax) break;
      message.session_ids[message.count++] = id;
    }
    (void)parts_.children->Send(worker, message);
  }
}

// Orders come first: an answered order may assign a lane, which is told as shared before.
void LaneRegistry::Reconcile() {
  for (const uint32_t worker : std::exchange(lost_, {})) {
    for (const Shrinking::Order& order : shrinking_.Lose(worker)) Shrink(order);
  }
  for (const Shrinking::Order& order : shrinking_.Untold()) Shrink(order);
  TellShared();
  TellAlone();
}

void LaneRegistry::OnChanged(uint32_t worker, const wire::LaneChanged& changed) const {
  ForwardChange(worker, changed);
  ReleaseIfEnded(changed.lane);
}

void LaneRegistry::OnWorkerLost(uint32_t worker) {
  ForwardChange(worker, wire::LaneChanged{0});  // 0: any lane
  lost_.insert(worker);
}

void LaneRegistry::ForwardChange(uint32_t worker, const wire::LaneChanged& changed) const {
  for (const std::pair<const uint32_t, Worker>& entry : parts_.children->workers()) {
    if (entry.first != worker) (void)parts_.children->Send(entry.first, changed);
  }
}

std::set<uint32_t> LaneRegistry::WorkersOf(uint64_t lane) const {
  std::set<uint32_t> workers;
  for (const std::pair<const uint64_t, Session>& entry : parts_.sessions->all()) {
    const Session& session = entry.second;
    if (session.lane == lane && RunsInWorker(session)) workers.insert(session.worker);
  }
  return workers;
}

// --- a lane's memory -----------------------------------------------------------------------------

bool LaneRegistry::Exists(uint64_t lane) const {
  return parts_.scheduler->state().lanes.count(IdOf(lane)) != 0;
}

void LaneRegistry::Resize(const scheduler::ResizeLane& resize) {
  const std::unordered_map<scheduler::LaneId, scheduler::Lane>& lanes =
      parts_.scheduler->state().lanes;
  const std::unordered_map<scheduler::LaneId, scheduler::Lane>::const_iterator lane =
      lanes.find(resize.lane);
  const bool grows = lane != lanes.end() && lane->second.shrinking_to != resize.bytes;
  if (!grows) Shrink({resize.lane, static_cast<uint64_t>(resize.bytes)});
}

// A worker that starts has none of the lane, and hears the order before it gets any: it need not
// answer when a ready worker does.
std::set<uint32_t> LaneRegistry::TellAllWorkers(const wire::ResizeLane& order) const {
  std::set<uint32_t> told;
  for (const std::pair<const uint32_t, Worker>& entry : parts_.children->workers()) {
    if (parts_.children->Send(entry.first, order).ok()) told.insert(entry.first);
  }
  const auto ready = [this](uint32_t worker) { return parts_.children->Ready(worker) != nullptr; };
  if (std::any_of(told.begin(), told.end(), ready))
    std::erase_if(told, [&ready](uint32_t worker) { return !ready(worker); });
  return told;
}

// True when a session of the lane waits for its worker. That worker gets the order later.
bool LaneRegistry::IsAwaited(uint64_t lane) const {
  const std::map<uint64_t, Session>& all = parts_.sessions->all();
  return std::any_of(all.begin(), all.end(), [lane](const auto& entry) {
    const Phase phase = entry.second.phase;
    return entry.second.lane == lane && (phase == Phase::kWaiting || phase == Phase::kAttaching ||
                                         phase == Phase::kMoving || phase == Phase::kEntering);
  });
}

void LaneRegistry::Shrink(const Shrinking::Order& order) {
  const wire::ResizeLane message{order.lane, order.bytes};
  std::set<uint32_t> told = WorkersOf(order.lane);
  // A send fails when the worker is ending: its orders are repeated when it has ended.
  for (const uint32_t worker : told) (void)parts_.children->Send(worker, message);
  if (told.empty()) told = TellAllWorkers(message);  // a worker may have it without its sessions
  shrinking_.Tell(order, told);
  if (!told.empty()) return;
  if (IsAwaited(order.lane) && order.bytes != 0) return;
  // No worker has the lane: the keeper frees its memory at once.
  shrinking_.Forget(order.lane);
  Release(order.lane);
  parts_.scheduler->Apply(
      scheduler::LaneShrunk{IdOf(order.lane), static_cast<int64_t>(order.bytes)});
}

void LaneRegistry::OnShrunk(uint32_t worker, const wire::LaneShrunk& shrunk) {
  const std::optional<Shrinking::Order> done =
      shrinking_.Answer(worker, {shrunk.lane, shrunk.bytes});
  if (!done.has_value()) return;
  // No worker has the lane mapped any more, so the keeper frees its memory. The memory of a lane
  // that stays is left alone: a worker may just have made it.
  if (done->bytes == 0 && WorkersOf(done->lane).empty()) Release(done->lane);
  parts_.scheduler->Apply(
      scheduler::LaneShrunk{IdOf(done->lane), static_cast<int64_t>(done->bytes)});
}

void LaneRegistry::Release(uint64_t lane) const {
  parts_.children->TellKeeper(wire::ReleaseOwner{{wire::OwnerKind::kLane, lane}});
}

void LaneRegistry::ReleaseUnknownOwners() {
  for (const wire::Usage& usage : parts_.children->keeper().usages) {
    const uint64_t id = wire::SessionOf(usage.owner);
    if (id != 0 && parts_.sessions->Find(id) == nullptr)
      parts_.children->TellKeeper(wire::ReleaseOwner{usage.owner});
  }
  CountFound();
}

// The keeper may hold a lane that has no session left: the workers that map such a lane give it up
// first. The keeper may also hold more of a lane than the lane's sessions need, because sessions
// gave a part back while no lanewayd was there. An idle session may be inside that lane: so the
// scheduler counts the whole lane, and shrinks the lane when memory is needed.
// A session that took a lane of its own meanwhile stays in there until its iteration ends. The
// session's lane counts with the bytes of both.
void LaneRegistry::CountFound() {
  std::map<uint64_t, uint64_t> kept;  // bytes by lane
  for (const wire::Usage& usage : parts_.children->keeper().usages) {
    if (wire::SessionOf(usage.owner) == 0) {
      kept[usage.owner.id] += usage.bytes;
    } else if (usage.owner.kind == wire::OwnerKind::kLane) {
      const Session* const owner = parts_.sessions->Find(wire::SessionOf(usage.owner));
      if (owner != nullptr && owner->lane != 0) kept[owner->lane] += usage.bytes;
    }
  }
  for (const std::pair<const uint64_t, uint64_t>& lane : kept) {
    if (Exists(lane.first)) {
      parts_.scheduler->Apply(
          scheduler::LaneFound{IdOf(lane.first), static_cast<int64_t>(lane.second)});
    } else {
      Shrink({lane.first, 0});
    }
  }
}

// A session may have come into a lane that had ended by then, and have left it since.
void LaneRegistry::ReleaseIfEnded(uint64_t lane) const {
  // Lane 0 stands for any lane in LaneChanged, and is none that could have ended. An adopted lane
  // is known to the scheduler only when lanewayd serves.
  if (!parts_.scheduler->serving() || lane == 0 || Exists(lane)) return;
  if (WorkersOf(lane).empty()) Release(lane);
}

void LaneRegistry::ReleaseSession(uint64_t session) const {
  parts_.children->TellKeeper(wire::ReleaseOwner{{wire::OwnerKind::kSession, session}});
  ReleaseOwnLane(session);
}

void LaneRegistry::ReleaseOwnLane(uint64_t session) const { Release(wire::OwnLaneOf(session)); }

// A lane's guests are the sessions that were ever told of the lane. Only guests make memory there,
// perhaps in a worker that is lost before lanewayd hears of it. So a lane that has ended is
// released with its last guest. A lane that exists is released when there is no session at all.
// Before lanewayd serves, other guests may yet be reported: the next session that ends decides
// then.
void LaneRegistry::OnSessionGone(uint64_t session) {
  for (std::map<uint64_t, std::set<uint64_t>>::iterator it = guests_.begin();
       it != guests_.end();) {
    const std::map<uint64_t, std::set<uint64_t>>::iterator entry = it++;
    entry->second.erase(session);
    if (!entry->second.empty() || !parts_.scheduler->serving()) continue;
    if (Exists(entry->first) && !parts_.sessions->all().empty()) continue;
    Release(entry->first);
    guests_.erase(entry);
  }
}

}  // namespace control
