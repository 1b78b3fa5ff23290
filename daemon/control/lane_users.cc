// Who uses which lane: in which workers, and whether anybody else is there; how lanes give memory
// back.
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "daemon/control/daemon.h"

namespace control {

namespace {

namespace wire = ipc::control;

}  // namespace

// Which lanes several workers have.
void Daemon::TellShared() {
  std::map<uint64_t, std::set<uint32_t>> now;
  for (const std::pair<const uint64_t, Session>& entry : sessions_.all()) {
    const Session& session = entry.second;
    if (session.lane != 0 && session.phase == Phase::kRunning && !session.in_process)
      now[session.lane].insert(session.worker);
  }
  for (const std::pair<const uint64_t, std::set<uint32_t>>& entry : now) {
    const std::set<uint32_t>& before = lane_workers_[entry.first];
    if (entry.second == before || (entry.second.size() < 2 && before.size() < 2)) continue;
    for (const uint32_t worker : entry.second)
      (void)children_->Send(worker, wire::LaneShared{entry.first, entry.second.size() > 1, 0});
  }
  lane_workers_ = std::move(now);
}

// Before anything is decided with somebody new: who was alone tells then that it rests.
void Daemon::TellAlone() {
  for (const Alone::Word& word : alone_.Change(PlaceOfOnly(sessions_.all()))) {
    (void)children_->Send(word.place.worker, wire::LaneShared{word.place.lane, 0, word.alone});
  }
}

std::set<uint32_t> Daemon::WorkersOf(uint64_t lane) const {
  std::set<uint32_t> workers;
  for (const std::pair<const uint64_t, Session>& entry : sessions_.all()) {
    const Session& session = entry.second;
    if (session.lane == lane && session.phase == Phase::kRunning && !session.in_process)
      workers.insert(session.worker);
  }
  return workers;
}

// Growing needs no word: whoever enters makes it as large as it needs it.
void Daemon::ResizeLane(const scheduler::ResizeLane& resize) {
  const std::unordered_map<scheduler::LaneId, scheduler::Lane>::const_iterator lane =
      scheduler_.state().lanes.find(resize.lane);
  const bool grows =
      lane != scheduler_.state().lanes.end() && lane->second.shrinking_to != resize.bytes;
  if (!grows) TellToShrink({resize.lane, static_cast<uint64_t>(resize.bytes)});
}

void Daemon::TellToShrink(const Shrinking::Order& order) {
  const wire::ResizeLane message{order.lane, order.bytes};
  std::set<uint32_t> told = WorkersOf(order.lane);
  // A send fails when the worker is ending: what is ordered is told anew when it has.
  for (const uint32_t worker : told) (void)children_->Send(worker, message);
  if (told.empty()) {  // its sessions have left it: whoever of the workers knows it lets go of it
    for (const std::pair<const uint32_t, Worker>& entry : children_->workers()) {
      if (children_->Send(entry.first, message).ok()) told.insert(entry.first);
    }
    const bool any_ready = std::any_of(told.begin(), told.end(), [this](uint32_t worker) {
      return children_->Ready(worker) != nullptr;
    });
    // Who starts has none of it, and hears this before it gets any.
    if (any_ready)
      std::erase_if(told, [this](uint32_t worker) { return children_->Ready(worker) == nullptr; });
  }
  shrinking_.Tell(order, told);
  if (!told.empty()) return;
  const bool awaited =
      std::any_of(sessions_.all().begin(), sessions_.all().end(), [&order](const auto& entry) {
        const Phase phase = entry.second.phase;
        return entry.second.lane == order.lane &&
               (phase == Phase::kWaiting || phase == Phase::kAttaching || phase == Phase::kMoving ||
                phase == Phase::kEntering);
      });
  if (awaited && order.bytes != 0) return;  // by the next worker
  // Nobody has it: what the keeper keeps for it goes at once.
  shrinking_.Forget(order.lane);
  ReleaseLane(order.lane);
  scheduler_.Apply(scheduler::LaneShrunk{static_cast<scheduler::LaneId>(order.lane),
                                         static_cast<int64_t>(order.bytes)});
}

void Daemon::RecordShrink(uint32_t worker, const wire::LaneShrunk& shrunk) {
  if (!shrinking_.Answer(worker, {shrunk.lane, shrunk.bytes})) return;
  // Nobody has it mapped any more: what the keeper still keeps for it goes. Of a lane that stays it
  // might be what a worker has just made.
  if (shrunk.bytes == 0 && WorkersOf(shrunk.lane).empty()) ReleaseLane(shrunk.lane);
  scheduler_.Apply(scheduler::LaneShrunk{static_cast<scheduler::LaneId>(shrunk.lane),
                                         static_cast<int64_t>(shrunk.bytes)});
}

void Daemon::TellUntoldShrinks() {
  for (const Shrinking::Order& order : shrinking_.Untold()) TellToShrink(order);
}

void Daemon::ReleaseLane(uint64_t lane) {
  children_->TellKeeper(wire::ReleaseOwner{{wire::OwnerKind::kLane, lane}});
}

// A session may have come into a lane that had ended when it heard of it, and have left it since.
void Daemon::ReleaseIfEnded(uint64_t lane) {
  // Lane 0 stands for any lane in LaneChanged, and is none that could have ended.
  if (!scheduler_.serving() || lane == 0 || !WorkersOf(lane).empty()) return;
  if (scheduler_.state().lanes.count(static_cast<scheduler::LaneId>(lane)) != 0) return;
  ReleaseLane(lane);
}

// A lane's memory is made by those who were told of it, whatever else they were told since, and
// perhaps in a worker that is lost before it says so. When the last of them has ended, nobody makes
// any; when nobody is left at all, nobody uses any.
void Daemon::ReleaseLanesOf(uint64_t session) {
  for (std::map<uint64_t, std::set<uint64_t>>::iterator it = lane_guests_.begin();
       it != lane_guests_.end();) {
    const std::map<uint64_t, std::set<uint64_t>>::iterator entry = it++;
    entry->second.erase(session);
    const bool ended =
        scheduler_.state().lanes.count(static_cast<scheduler::LaneId>(entry->first)) == 0;
    if (!entry->second.empty() || (!ended && !sessions_.all().empty())) continue;
    ReleaseLane(entry->first);
    lane_guests_.erase(entry);
  }
}

}  // namespace control
