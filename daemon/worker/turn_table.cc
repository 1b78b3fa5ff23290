#include "daemon/worker/turn_table.h"

#include <algorithm>
#include <cassert>

namespace worker {

using ipc::Turn;
using ipc::TurnEvent;
using ipc::control::GateEvent;
using ipc::control::GateReport;
using ipc::control::Switched;

// --- a session -----------------------------------------------------------------------------------

TurnActions TurnTable::Remove(uint64_t session) {
  Entry* const entry = Find(session);
  if (entry == nullptr) return {};
  ReportIfUntold(entry);
  entry->second.demand = entry->second.told = GateEvent::kIdle;  // it does not follow itself
  const bool held = HoldsLane(entry->second.turn);
  Move(entry, TurnEvent::kLaneLost);
  if (held) PassOn(*entry);
  sessions_.erase(session);
  std::erase_if(lanes_, [this](const std::pair<const uint64_t, Lane>& lane) {
    return lane.second.self_service && !HasSessions(lane.first);
  });
  return Done();
}

bool TurnTable::HasSessions(uint64_t lane) const {
  return std::any_of(sessions_.begin(), sessions_.end(),
                     [lane](const Entry& entry) { return entry.second.lane == lane; });
}

TurnActions TurnTable::ReportRunnable(uint64_t session) {
  Entry* const entry = Find(session);
  if (entry == nullptr) return {};
  entry->second.demand = GateEvent::kRunnable;
  entry->second.ticket = ++tickets_;
  if (daemon_) {
    ReportIfUntold(entry);  // not after an idle period that was never reported
    return Done();
  }
  entry->second.told = GateEvent::kRunnable;  // the next daemon reads it
  const uint64_t holder = lanes_[entry->second.lane].holder;
  if (holder != 0 && holder != session) Do(WakeSession{holder});  // it may be idle in the lane
  OpenIfFree(entry->second.lane);
  return Done();
}

TurnActions TurnTable::ReportIdle(uint64_t session, GateEvent idle) {
  Entry* const entry = Find(session);
  if (entry == nullptr) return {};
  entry->second.demand = idle;
  if (!IsUncontended(*entry)) ReportIfUntold(entry);
  return Done();
}

TurnActions TurnTable::FlushIdleReport(uint64_t session) {
  Entry* const entry = Find(session);
  if (entry == nullptr) return {};
  ReportIfUntold(entry);
  return Done();
}

TurnActions TurnTable::Apply(uint64_t session, TurnEvent event) {
  Entry* const entry = Find(session);
  if (entry == nullptr) return {};
  const uint64_t holder = lanes_[entry->second.lane].holder;
  if (event == TurnEvent::kTakeLane && holder != 0) return {};
  if (event == TurnEvent::kSwappedOut) ReportIfUntold(entry);
  const Turn before = entry->second.turn;
  Move(entry, event);
  if (entry->second.turn == Turn::kDraining && before != Turn::kDraining) {
    if (const Entry* const next = Next(entry->second.lane)) Do(PrepareSession{next->first});
  }
  if (before == Turn::kDraining && event == TurnEvent::kDeviceDone) PassOn(*entry);
  OpenIfFree(entry->second.lane);
  return Done();
}

void TurnTable::ReportIfUntold(Entry* entry) {
  Session& session = entry->second;
  if (session.told == session.demand) return;
  session.told = session.demand;
  Do(TurnReport(GateReport{entry->first, session.demand}));
}

// --- a lane --------------------------------------------------------------------------------------

// The one place where turns change and lanes get and lose their holders.
void TurnTable::Move(Entry* entry, TurnEvent event, std::optional<Switched> switched) {
  Session& session = entry->second;
  Lane& lane = lanes_[session.lane];
  const Turn before = session.turn;
  session.turn = ipc::Step(before, event);
  if (HoldsLane(before) && !HoldsLane(session.turn)) {
    assert(lane.holder == entry->first);
    lane.holder = 0;
    session.ticket = ++tickets_;  // behind the sessions that wait
  }
  if (!HoldsLane(before) && HoldsLane(session.turn)) {
    assert(lane.holder == 0);
    lane.holder = entry->first;
  }
  if (GateStateOf(before) == GateStateOf(session.turn)) return;
  if (session.turn != Turn::kHolding || before == Turn::kRevoked)
    return Do(ShowGate{entry->first, GateStateOf(session.turn)});
  lane.successors.clear();  // they were to follow the last holder
  Do(OpenGate{entry->first, switched});
}

bool TurnTable::CanFollow(const Entry& entry) const {
  return entry.second.demand == GateEvent::kRunnable && entry.second.turn == Turn::kOutside &&
         paused_.count(entry.first) == 0;
}

// A list may be older than what its sessions were told since: a session of it may be in another
// lane.
TurnTable::Entry* TurnTable::Next(uint64_t lane_id) {
  for (const uint64_t id : lanes_[lane_id].successors) {
    Entry* const entry = Find(id);
    if (entry != nullptr && entry->second.lane == lane_id && CanFollow(*entry)) return entry;
  }
  if (daemon_) return nullptr;
  Entry* first = nullptr;
  for (Entry& entry : sessions_) {
    if (entry.second.lane != lane_id || !CanFollow(entry)) continue;
    if (first == nullptr || entry.second.ticket < first->second.ticket) first = &entry;
  }
  return first;
}

// Without a daemon also a lane of several workers stays in this one.
void TurnTable::PassOn(const Entry& from) {
  const uint64_t lane = from.second.lane;
  Entry* const next = Next(lane);
  const Switched switched{lane, from.first, next == nullptr ? 0 : next->first, 0};
  if (next == nullptr) return Do(TurnReport(switched));
  Move(next, TurnEvent::kGrant, switched);
}

void TurnTable::OpenIfFree(uint64_t lane_id) {
  const Lane& lane = lanes_[lane_id];
  if (daemon_ || lane.holder != 0 || !lane.self_service) return;
  if (Entry* const next = Next(lane_id)) Move(next, TurnEvent::kGrant);
}

bool TurnTable::IsUncontended(const Entry& entry) const {
  const std::map<uint64_t, Lane>::const_iterator lane = lanes_.find(entry.second.lane);
  return entry.second.turn == Turn::kHolding && lane != lanes_.end() && !lane->second.contended;
}

// --- lanewayd ------------------------------------------------------------------------------------

TurnActions TurnTable::Grant(uint64_t session, uint64_t lane_id) {
  Entry* const entry = Find(session);  // null: it ended meanwhile
  if (entry != nullptr && entry->second.lane == lane_id && HoldsLane(entry->second.turn)) {
    Move(entry, TurnEvent::kGrant);
    return Done();
  }
  // lanewayd believes from now on that the session holds the lane, and must hear when that is not
  // so.
  const std::map<uint64_t, Lane>::const_iterator lane = lanes_.find(lane_id);
  const uint64_t holder = lane == lanes_.end() ? 0 : lane->second.holder;
  if (entry == nullptr || holder != 0 || entry->second.turn != Turn::kOutside) {
    Do(TurnReport(Switched{lane_id, session, holder, 0}));
    return Done();
  }
  entry->second.lane = lane_id;
  Move(entry, TurnEvent::kGrant);
  return Done();
}

TurnActions TurnTable::Revoke(uint64_t session) {
  Entry* const entry = Find(session);
  if (entry == nullptr || entry->second.turn != Turn::kHolding) return {};
  ReportIfUntold(entry);
  Move(entry, TurnEvent::kRevoke);
  Do(WakeSession{session});
  return Done();
}

TurnActions TurnTable::SetLane(uint64_t session, uint64_t lane) {
  Entry* const entry = Find(session);
  if (entry == nullptr || entry->second.lane == lane) return {};
  ReportIfUntold(entry);
  const uint64_t before = entry->second.lane;
  Move(entry, TurnEvent::kLaneLost);
  entry->second.lane = lane;
  OpenIfFree(before);
  OpenIfFree(lane);
  return Done();
}

TurnActions TurnTable::SetPaused(uint64_t session, bool paused) {
  const bool changed = paused ? paused_.insert(session).second : paused_.erase(session) != 0;
  Entry* const entry = Find(session);
  if (entry == nullptr || !changed) return {};
  ReportIfUntold(entry);
  if (paused) Move(entry, TurnEvent::kRevoke);
  Do(WakeSession{session});
  OpenIfFree(entry->second.lane);
  return Done();
}

void TurnTable::SetSuccessors(uint64_t lane, std::vector<uint64_t> sessions) {
  lanes_[lane].successors = std::move(sessions);
}

TurnActions TurnTable::SetPolicy(const ipc::control::LanePolicy& policy) {
  Lane& lane = lanes_[policy.lane];
  lane.contended = policy.contended != 0;
  lane.self_service = policy.self_service != 0;
  for (Entry& entry : sessions_) {
    if (!lane.contended || entry.second.lane != policy.lane) continue;
    ReportIfUntold(&entry);
    // Another session may wait for something that an uncontended one looks at less often.
    Do(WakeSession{entry.first});
  }
  OpenIfFree(policy.lane);
  return Done();
}

void TurnTable::ForgetLane(uint64_t lane) {
  if (!HasSessions(lane)) lanes_.erase(lane);
}

TurnActions TurnTable::SetDaemon(bool present) {
  daemon_ = present;
  // A new daemon says anew which session is the only one. It takes every holder of a lane for one
  // that has work, until this worker says otherwise.
  for (std::pair<const uint64_t, Lane>& lane : lanes_) lane.second.contended = true;
  for (Entry& entry : sessions_) {
    if (present) entry.second.told = GateEvent::kRunnable;
    ReportIfUntold(&entry);
    Do(WakeSession{entry.first});
  }
  for (const Entry& entry : sessions_) OpenIfFree(entry.second.lane);
  return Done();
}

// --- looking -------------------------------------------------------------------------------------

TurnTable::Entry* TurnTable::Find(uint64_t session) {
  const std::map<uint64_t, Session>::iterator found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : &*found;
}

const TurnTable::Entry* TurnTable::Find(uint64_t session) const {
  const std::map<uint64_t, Session>::const_iterator found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : &*found;
}

GateView TurnTable::View(uint64_t session) const {
  const Entry* const entry = Find(session);
  if (entry == nullptr) return {};
  const Session& it = entry->second;
  GateView view;
  view.lane = it.lane;
  view.turn = it.turn;
  view.granted = HoldsLane(it.turn);
  view.wants = it.demand == GateEvent::kRunnable;
  view.open = MayWork(it.turn);
  view.idle_untold = it.demand != it.told;
  view.uncontended = IsUncontended(*entry);
  return view;
}

bool TurnTable::HasCompetitor(uint64_t session) const {
  const Entry* const entry = Find(session);
  return entry != nullptr &&
         std::any_of(sessions_.begin(), sessions_.end(), [this, entry](const Entry& other) {
           return other.first != entry->first && other.second.lane == entry->second.lane &&
                  CanFollow(other);
         });
}

}  // namespace worker
