#include "scheduler/scheduler.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "scheduler/core.h"
#include "scheduler/why.h"

namespace scheduler {
namespace {

Session* Enter(Core* core, const SessionArrived& about) {
  State* const state = core->state;
  assert(about.session != 0 && state->sessions.count(about.session) == 0);
  Touch(core, about.device);
  Session* const session = &state->sessions[about.session];
  session->about = about;
  session->id = about.session;
  session->arrival = state->arrivals++;
  session->arrived_us = core->now_us;
  if (session->gang()) JoinGang(state, *session);
  return session;
}

void Refuse(Core* core, Session* session, const std::string& reason) {
  const SessionId id = session->id;
  Unclaim(core, session);
  --core->state->queued;
  LeaveGang(core->state, *session);
  core->state->sessions.erase(id);
  core->actions.push_back(Reject{id, reason});
}

// Estimates come from other runs; what could never be admitted is a mistake of theirs.
void TakeEstimate(Core* core, Session* session) {
  const Estimate& estimate = session->about.estimate;
  std::string why;
  if (!AloneFits(*core->state, *session, estimate.persistent_bytes, estimate.ephemeral_bytes,
                 &why)) {
    return;
  }
  session->promised_bytes = estimate.persistent_bytes;
  session->ephemeral_bytes = estimate.ephemeral_bytes;
}

void On(Core* core, const SessionArrived& event) {
  State* const state = core->state;
  Session* const session = Enter(core, event);
  ++state->queued;
  TakeEstimate(core, session);
  Claim(core, session);
  ServeMemory(core, core->DeviceOf(*session));
  const Session* const now = core->Find(event.session);
  if (now == nullptr || now->phase != Phase::kQueued) return;
  // Waiting for a place is worth it only when one is about to come free, and for one session each.
  if (state->queued + state->admitted > state->limits.sessions_max + state->ending) {
    Refuse(core, session,
           "all " + std::to_string(state->limits.sessions_max) + " sessions are taken");
    return;
  }
  core->actions.push_back(Queue{event.session, Sentence(Why(*state, event.session, core->now_us))});
}

void Adopt(Core* core, const SessionAdopted& event, Session* session) {
  State* const state = core->state;
  session->phase = Phase::kAdmitted;
  ++state->admitted;
  ++core->UserOf(*session)->admitted;
  session->persistent_bytes = event.persistent_bytes;
  session->ephemeral_bytes = session->answered_bytes = event.ephemeral_bytes;
  session->uses_lane = event.ephemeral_bytes > 0;
  session->resident_us = core->now_us;
  const Residence residence = event.place.residence;
  const bool here = residence == Residence::kDevice || residence == Residence::kGoingOut;
  if (!here) {
    session->place = event.place;
    session->saved_lane_bytes = event.place.lane_saved != 0 ? event.ephemeral_bytes : 0;
    state->swapped_bytes += session->host_bytes();
    if (residence == Residence::kHost) return Claim(core, session);
    ++core->DeviceOf(*session)->swapping;
  }
  Account(core, session);
  const LaneId id = event.lane != 0 ? event.lane : state->lanes_made + 1;
  state->lanes_made = std::max(state->lanes_made, id);
  const bool known = state->lanes.count(id) != 0;
  Lane* const lane = known ? core->LaneOf(id) : MakeLane(core, id, *session);
  SetLaneBytes(core, lane, std::max({lane->bytes, event.lane_bytes, event.ephemeral_bytes}));
  lane->members.insert(session->id);
  lane->needs.insert(session->ephemeral_bytes);
  session->lane = id;
  if (!known && event.lane == 0) core->actions.push_back(AssignLane{session->id, id, lane->bytes});
  if ((here ? event.granted : event.place.lane_saved != 0) && lane->holder == nullptr) {
    session->runnable = true;
    Hold(core, lane, session);
    session->revoked = event.revoked;
    session->revoked_us = core->now_us;
  }
  if (residence != Residence::kGoingOut) return;
  // As it was ordered. The worker's session may have been given lane memory since.
  session->inside = session->granted && event.place.lane_saved;
  AwaitSwapOut(core, session);
}

void On(Core* core, const SessionAdopted& event) {
  Session* const session = Enter(core, event.arrived);
  Adopt(core, event, session);
  if (event.pause != Pause::kNone) Stop(core, session, event.pause);
}

void On(Core* core, const SessionMoved& event) {
  Session* const session = core->Find(event.session);
  if (session != nullptr && session->phase == Phase::kAdmitted) OnMoved(core, session, event);
}

void On(Core* core, const SessionEnding& event) {
  Session* const session = core->Find(event.session);
  if (session == nullptr || session->phase != Phase::kAdmitted) return;
  session->phase = Phase::kEnding;
  ++core->state->ending;
  core->devices.insert(session->about.device);
  Unclaim(core, session);
  Unblock(core, session);
  Account(core, session);
  List(core, session);
}

void On(Core* core, const SessionLeft& event) {
  Session* const session = core->Find(event.session);
  if (session == nullptr) return;
  State* const state = core->state;
  core->devices.insert(session->about.device);
  Unclaim(core, session);
  Unblock(core, session);
  const bool queued = session->phase == Phase::kQueued;
  const Residence residence = session->place.residence;
  if (residence == Residence::kGoingOut || residence == Residence::kComingIn) {
    --core->DeviceOf(*session)->swapping;
  }
  state->swapped_bytes -= session->host_bytes();
  state->queued -= queued;
  state->admitted -= !queued;
  core->UserOf(*session)->admitted -= !queued;
  state->ending -= session->phase == Phase::kEnding;
  session->phase = Phase::kEnding;
  session->place = {Residence::kHost};  // nothing of it is on the device
  LeaveLane(core, session);
  Account(core, session);
  if (session->gang()) LeaveGang(state, *session);
  state->sessions.erase(event.session);
}

void On(Core* core, const Runnable& event) {
  Session* const session = core->Find(event.session);
  if (session == nullptr || session->runnable) return;
  session->runnable = true;
  core->devices.insert(session->about.device);
  // On its way to the host it gets no further: its memory goes as it was when that began.
  if (session->granted && session->place.residence == Residence::kDevice) {
    session->inside = session->enters();
  }
  List(core, session);
  Claim(core, session);
}

void On(Core* core, const Idle& event) {
  Session* const session = core->Find(event.session);
  if (session == nullptr) return;
  session->runnable = false;
  core->devices.insert(session->about.device);
  if (event.at_boundary && session->place.residence == Residence::kDevice) session->inside = false;
  List(core, session);
  if (session->phase == Phase::kAdmitted) Claim(core, session);
}

void On(Core* core, const Progress& event) {
  Session* const session = core->Find(event.session);
  if (session != nullptr) OnProgress(core, session, event);
}

void On(Core* core, const Switched& event) { OnSwitched(core, event); }
void On(Core* core, const LaneShrunk& event) { OnLaneShrunk(core, event); }

// Memory that is counted too low would be granted twice. The size of a lane that shrinks is settled
// by the answer to that order.
void On(Core* core, const LaneFound& event) {
  core->state->lanes_made = std::max(core->state->lanes_made, event.lane);
  Lane* const lane = core->LaneOf(event.lane);
  if (lane == nullptr || lane->shrinking_to >= 0 || event.bytes <= lane->bytes) return;
  SetLaneBytes(core, lane, event.bytes);
  core->devices.insert(lane->device);
}

void On(Core* core, const MemoryNeeded& event) {
  Session* const session = core->Find(event.session);
  if (session == nullptr || session->phase != Phase::kAdmitted) return;
  if (session->need != Need::kNone) return;
  if (event.waits) {
    OnMemoryNeeded(core, session, event.bytes);
  } else {
    OnMemoryWanted(core, session, event.bytes);
  }
}

void On(Core* core, const LaneNeeded& event) {
  Session* const session = core->Find(event.session);
  if (session == nullptr || session->phase != Phase::kAdmitted) return;
  if (session->need == Need::kNone) OnLaneNeeded(core, session, event.bytes);
}

void On(Core* core, const MemoryFreed& event) {
  Session* const session = core->Find(event.session);
  if (session == nullptr || session->place.residence == Residence::kHost) return;
  const int64_t freed = std::min(event.bytes, session->persistent_bytes);
  session->persistent_bytes -= freed;
  if (session->place.residence != Residence::kDevice) core->state->swapped_bytes -= freed;
  core->devices.insert(session->about.device);
  Account(core, session);
}

void On(Core* core, const Swapped& event) {
  Session* const session = core->Find(event.session);
  if (session != nullptr) OnSwapped(core, session, event);
}

void On(Core* core, const PolicyChanged& event) {
  const Policy* const policy = FindPolicy(event.name);
  if (policy == nullptr) return;
  core->state->policy = policy;
  for (std::pair<const SessionId, Session>& entry : core->state->sessions) {
    if (entry.second.turn.session != 0) List(core, &entry.second);
    if (entry.second.claim.session != 0) Claim(core, &entry.second);
  }
  for (const std::pair<const uint32_t, Device>& entry : core->state->devices) {
    core->devices.insert(entry.first);
  }
}

void On(Core* core, const CapacityChanged& event) {
  Device* const device = Touch(core, event.device);
  device->capacity_bytes = event.capacity_bytes;
  device->overhead_bytes = event.overhead_bytes;
  device->reserve_bytes = event.reserve_bytes;
  device->lost = false;
}

void On(Core* core, const DeviceLost& event) {
  Device* const device = Touch(core, event.device);
  device->lost = true;
  for (Lane* const lane : device->lanes) {
    Session* const holder = lane->holder;
    if (holder == nullptr || holder->place.residence != Residence::kDevice) continue;
    LetGo(core, holder);
    EndDismissal(holder);  // its memory can't leave a lost device
    List(core, holder);
  }
}

void On(Core* core, const UserChanged& event) {
  User* const user = &core->state->users[event.user];
  user->weight = event.weight;
  user->memory_bytes = event.memory_bytes;
  user->sessions_max = event.sessions_max;
  for (const std::pair<const uint32_t, Device>& entry : core->state->devices) {
    core->devices.insert(entry.first);
  }
}

void On(Core* core, const LimitChanged& event) {
  Session* const session = core->Find(event.session);
  if (session == nullptr) return;
  session->about.limit_bytes = event.limit_bytes;
  // What it asked for is on its way with it: the new limit is for what it asks for next.
  if (session->need == Need::kNone || session->need_comes) return;
  std::string why;
  const bool lane = session->need == Need::kLane;
  if (lane && session->need_bytes <= session->asked_lane_bytes()) return;  // it has that already
  if (AloneFits(*core->state, *session,
                session->persistent_bytes + (lane ? 0 : session->need_bytes),
                lane ? session->need_bytes : session->asked_lane_bytes(), &why)) {
    return;
  }
  core->actions.push_back(RefuseMemory{session->id, why});
  Unblock(core, session);
}

void On(Core* core, const Timer& event) {
  for (const std::pair<const uint32_t, Device>& entry : core->state->devices) {
    if (entry.second.timer_us <= core->now_us) core->devices.insert(entry.first);
  }
}

// The first who waits for memory, if nobody gets anywhere and nothing that was begun changes that.
Session* Stuck(Core* core, const Device& device) {
  if (device.lost || (device.needs.empty() && device.claims.empty())) return nullptr;
  if (device.swapping != 0 || device.coming_bytes != 0) return nullptr;
  for (Lane* const lane : device.lanes) {
    const Session* const holder = lane->holder;
    if (holder != nullptr && (holder->progressing() || (holder->revoked && !holder->inside &&
                                                        holder->phase == Phase::kAdmitted))) {
      return nullptr;
    }
  }
  if (!device.needs.empty()) return core->Find(device.needs.begin()->session);
  Session* const first = device.claims.begin()->second;
  return HasPlace(*core->state, *first) ? first : nullptr;
}

void GiveAllTurns(Core* core) {
  while (!core->devices.empty()) {  // a gang that falls apart concerns other devices
    const uint32_t id = *core->devices.begin();
    FinishClosings(core, core->state->devices.at(id));
    GiveTurns(core, &core->state->devices.at(id));
    core->devices.erase(id);
  }
}

void Settle(Core* core) {
  const DeviceSet touched = core->devices;
  for (const uint32_t id : touched) ServeMemory(core, &core->state->devices.at(id));
  if (!core->state->ready_gangs.empty() || core->state->assembling != 0) GiveGangTurns(core);
  GiveAllTurns(core);
  for (const uint32_t id : touched) {
    Device* const device = &core->state->devices.at(id);
    Session* const first = Stuck(core, *device);
    const int64_t refuse_us = std::exchange(device->refuse_us, kUnlimited);
    if (first == nullptr && refuse_us == kUnlimited) continue;
    if (first != nullptr) BreakWait(core, device, first, refuse_us);
    core->devices.insert(id);
    GiveAllTurns(core);
  }
}

}  // namespace

State::State(const std::string& policy_name, const Limits& given)
    : limits(given), policy(FindPolicy(policy_name)) {
  assert(policy != nullptr);
}

const Session* State::Find(SessionId session) const {
  const std::unordered_map<SessionId, Session>::const_iterator found = sessions.find(session);
  return found == sessions.end() ? nullptr : &found->second;
}

Session* Core::Find(SessionId session) {
  const std::unordered_map<SessionId, Session>::iterator found = state->sessions.find(session);
  return found == state->sessions.end() ? nullptr : &found->second;
}

Lane* Core::LaneOf(LaneId lane) {
  const std::unordered_map<LaneId, Lane>::iterator found = state->lanes.find(lane);
  return found == state->lanes.end() ? nullptr : &found->second;
}

std::vector<Action> OnEvent(State* state, const Event& event, int64_t now_us) {
  Core core;
  core.state = state;
  core.now_us = now_us;
  core.actions.reserve(8);
  std::visit([&core](const auto& what) { On(&core, what); }, event);
  Settle(&core);
  return std::move(core.actions);
}

int64_t NextTimerUs(const State& state) {
  int64_t next = kUnlimited;
  for (const std::pair<const uint32_t, Device>& entry : state.devices) {
    next = std::min(next, entry.second.timer_us);
  }
  return next;
}

}  // namespace scheduler
