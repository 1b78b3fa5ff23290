// Who uses which lane: in which workers, and whether anybody else is there.
#include <algorithm>
#include <map>
#include <set>
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
      (void)children_.Send(worker, wire::LaneShared{entry.first, entry.second.size() > 1, 0});
  }
  lane_workers_ = std::move(now);
}

// Before anything is decided with somebody new: who was alone tells then that it rests.
void Daemon::TellAlone() {
  const std::map<uint64_t, Session>& all = sessions_.all();
  const Session* const only = all.size() == 1 ? &all.begin()->second : nullptr;
  std::pair<uint32_t, uint64_t> now;
  if (only != nullptr && only->phase == Phase::kRunning && !only->in_process && only->lane != 0)
    now = {only->worker, only->lane};
  if (now == alone_) return;
  const std::pair<uint32_t, uint64_t> before = std::exchange(alone_, now);
  for (const std::pair<uint32_t, uint64_t>& place : {before, now}) {
    if (place.second == 0) continue;
    (void)children_.Send(place.first, wire::LaneShared{place.second, 0, place == now});
  }
}

// Every worker that has the lane hears of it once.
void Daemon::SendToLane(uint64_t lane, const wire::Message& message) {
  std::set<uint32_t> told;
  for (const std::pair<const uint64_t, Session>& entry : sessions_.all()) {
    const Session& session = entry.second;
    if (session.lane != lane || session.phase != Phase::kRunning || session.in_process) continue;
    if (told.insert(session.worker).second) (void)children_.Send(session.worker, message);
  }
}

bool Daemon::HasMembers(uint64_t lane) const {
  return std::any_of(sessions_.all().begin(), sessions_.all().end(), [lane](const auto& entry) {
    const Session& session = entry.second;
    return session.lane == lane && session.phase == Phase::kRunning && !session.in_process;
  });
}

void Daemon::ReleaseLane(uint64_t lane) {
  children_.TellKeeper(wire::ReleaseOwner{{wire::OwnerKind::kLane, lane}});
}

// A session may have come into a lane that had ended when it heard of it, and have left it since.
void Daemon::ReleaseIfEnded(uint64_t lane) {
  if (!serving_ || HasMembers(lane)) return;
  if (state_.lanes.count(static_cast<scheduler::LaneId>(lane)) != 0) return;
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
    const bool ended = state_.lanes.count(static_cast<scheduler::LaneId>(entry->first)) == 0;
    if (!entry->second.empty() || (!ended && !sessions_.all().empty())) continue;
    ReleaseLane(entry->first);
    lane_guests_.erase(entry);
  }
}

}  // namespace control
