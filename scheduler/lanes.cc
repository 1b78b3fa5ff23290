// Lanes: which one a session gets (Salus, algorithm 2.1), and how they grow, shrink and merge.
#include <algorithm>
#include <cassert>

#include "scheduler/core.h"

namespace scheduler {
namespace {

// Two ranks of one gang run at once: they can't share a lane.
bool HoldsGangMate(const State& state, const Lane& lane, const Session& session) {
  if (!session.gang()) return false;
  const std::map<uint64_t, Gang>::const_iterator gang = state.gangs.find(session.about.job);
  if (gang == state.gangs.end()) return false;
  for (const SessionId mate : gang->second.members) {
    if (mate != session.id && lane.members.count(mate) != 0) return true;
  }
  return false;
}

bool Usable(const State& state, const Lane& lane, const Session& session) {
  return lane.user == session.about.user && !lane.closing && lane.shrinking_to < 0 &&
         !HoldsGangMate(state, lane, session);
}

void SetComing(Core* core, Lane* lane, int64_t bytes) {
  core->state->devices.at(lane->device).coming_bytes += bytes - lane->coming_bytes;
  lane->coming_bytes = bytes;
}

void Drop(Core* core, Lane* lane) {
  if (lane->reserved != 0) {
    if (Session* const waiter = core->Find(lane->reserved)) waiter->reserving = 0;
  }
  SetComing(core, lane, 0);
  SetLaneBytes(core, lane, 0);
  std::vector<Lane*>& lanes = core->state->devices.at(lane->device).lanes;
  lanes.erase(std::find(lanes.begin(), lanes.end(), lane));
  core->state->lanes.erase(lane->id);
}

void StartShrinking(Core* core, Lane* lane, int64_t bytes) {
  assert(lane->holder == nullptr && lane->shrinking_to < 0);
  lane->closing = false;
  lane->merge_into = 0;
  core->actions.push_back(ResizeLane{lane->id, bytes});
  if (lane->bytes == 0) {  // there is nothing to free
    Drop(core, lane);
    return;
  }
  lane->shrinking_to = bytes;
  SetComing(core, lane, lane->bytes - bytes);
}

void Detach(Core* core, Session* session) {
  Lane* const lane = core->LaneOf(session->lane);
  Unlist(core, session);
  if (session->granted) LetGo(core, session);
  lane->members.erase(session->id);
  lane->needs.erase(lane->needs.find(session->ephemeral_bytes));
  session->lane = 0;
}

void DropIfEmpty(Core* core, LaneId id) {
  Lane* const lane = core->LaneOf(id);
  if (lane != nullptr && lane->members.empty() && lane->shrinking_to < 0) {
    StartShrinking(core, lane, 0);
  }
}

LaneChoice BestMatch(const State& state, const Session& session, int64_t persistent,
                     int64_t ephemeral) {
  if (!Fits(state, session, persistent)) return {};
  const Lane* best = nullptr;
  for (const Lane* const lane : state.devices.at(session.about.device).lanes) {
    if (!Usable(state, *lane, session) || lane->bytes < ephemeral) continue;
    if (best == nullptr || lane->bytes < best->bytes ||
        (lane->bytes == best->bytes && lane->members.size() < best->members.size())) {
      best = lane;
    }
  }
  if (best == nullptr) return {};
  return {LaneChoice::kJoin, best->id, best->bytes};
}

// The smallest lane that may be made large enough: the least has to be added to the largest, but
// the smallest leaves the others as they are (Salus, line 7).
LaneChoice Growable(const State& state, const Session& session, int64_t persistent,
                    int64_t ephemeral) {
  const Lane* best = nullptr;
  for (const Lane* const lane : state.devices.at(session.about.device).lanes) {
    if (!Usable(state, *lane, session) || lane->bytes >= ephemeral) continue;
    if (!Fits(state, session, persistent + ephemeral - lane->bytes)) continue;
    if (best == nullptr || lane->bytes < best->bytes) best = lane;
  }
  if (best == nullptr) return {};
  return {LaneChoice::kGrow, best->id, ephemeral};
}

}  // namespace

LaneChoice FindLane(const State& state, const Session& session, int64_t persistent,
                    int64_t ephemeral) {
  // In whatever lane, its own memory comes with it: on a full device nothing else need be looked
  // at.
  if (!Fits(state, session, persistent)) return {};
  const Device& device = state.devices.at(session.about.device);
  unsigned usable = 0;
  for (const Lane* const lane : device.lanes) usable += Usable(state, *lane, session);
  const unsigned width = std::min(state.policy->Lanes(state, device), state.limits.lanes_max);
  const bool fits_new = Fits(state, session, persistent + ephemeral);
  const LaneChoice fresh = {LaneChoice::kNew, 0, ephemeral};
  // More lanes than run at once would keep memory from sessions that could share one.
  if (fits_new && usable < width && device.lanes.size() < state.limits.lanes_max) return fresh;
  const LaneChoice match = BestMatch(state, session, persistent, ephemeral);
  if (match.kind != LaneChoice::kNone) return match;
  const LaneChoice grown = Growable(state, session, persistent, ephemeral);
  if (grown.kind != LaneChoice::kNone) return grown;
  // A user without a lane gets one even past lanes_max: users are few.
  if (fits_new && (device.lanes.size() < state.limits.lanes_max || usable == 0)) return fresh;
  return {};
}

Lane* MakeLane(Core* core, LaneId id, const Session& session) {
  Lane* const lane = &core->state->lanes[id];
  lane->id = id;
  lane->user = session.about.user;
  lane->device = session.about.device;
  core->DeviceOf(session)->lanes.push_back(lane);
  return lane;
}

void GrowLane(Core* core, Lane* lane, int64_t bytes) {
  assert(bytes >= lane->bytes && lane->shrinking_to < 0);
  if (bytes == lane->bytes) return;
  SetLaneBytes(core, lane, bytes);
  core->actions.push_back(ResizeLane{lane->id, bytes});
}

void SetEphemeral(Core* core, Session* session, int64_t bytes) {
  if (Lane* const lane = core->LaneOf(session->lane)) {
    lane->needs.erase(lane->needs.find(session->ephemeral_bytes));
    lane->needs.insert(bytes);
    assert(lane->bytes >= bytes);
  }
  session->ephemeral_bytes = bytes;
  if (session->granted && session->runnable) session->inside = session->enters();
}

void TakeLane(Core* core, Session* session, const LaneChoice& choice, int64_t ephemeral,
              bool answer) {
  assert(choice.kind != LaneChoice::kNone);
  LaneId id = choice.lane;
  if (id == 0) {
    id = ++core->state->lanes_made;
    SetLaneBytes(core, MakeLane(core, id, *session), choice.bytes);
  } else {
    GrowLane(core, core->LaneOf(id), choice.bytes);
  }
  Lane* const lane = core->LaneOf(id);
  const LaneId before = session->lane;
  if (before != id) {
    int64_t behind = 0;  // its place among the others goes along
    if (const Lane* const old = core->LaneOf(session->lane)) {
      behind = std::min(session->virtual_us - old->virtual_floor_us, core->state->limits.slice_us);
      Detach(core, session);
    }
    session->virtual_us = std::max<int64_t>(0, lane->virtual_floor_us + behind);
    session->lane = id;
    session->ephemeral_bytes = ephemeral;
    lane->members.insert(session->id);
    lane->needs.insert(ephemeral);
  } else {
    SetEphemeral(core, session, ephemeral);
  }
  core->actions.push_back(AssignLane{session->id, id, lane->bytes, answer});
  if (before != id) DropIfEmpty(core, before);
  List(core, session);
}

void LeaveLane(Core* core, Session* session) {
  const LaneId lane = session->lane;
  if (lane == 0) return;
  Detach(core, session);
  DropIfEmpty(core, lane);
}

// A holder that waits for memory inside an iteration comes to no boundary: its lane stays. What
// comes along with a session on its way in is no wait.
bool HolderStays(const Lane& lane) {
  const Session* const holder = lane.holder;
  return holder != nullptr && holder->need != Need::kNone && !holder->need_comes && holder->inside;
}

void KeepLane(Core* core, Lane* lane) {
  if (!lane->closing) return;
  lane->closing = false;
  lane->merge_into = 0;
  SetComing(core, lane, 0);
}

void ShrinkLane(Core* core, Lane* lane) {
  const int64_t slack = lane->bytes - lane->needed_bytes();
  if (lane->shrinking_to >= 0 || lane->closing || slack <= 0 || HolderStays(*lane)) return;
  if (lane->holder == nullptr) {
    StartShrinking(core, lane, lane->needed_bytes());
    return;
  }
  lane->closing = true;
  SetComing(core, lane, slack);
  RevokeHolder(core, lane, false);
}

void MergeLane(Core* core, Lane* lane, Lane* into) {
  assert(!lane->closing && lane->shrinking_to < 0 && !into->closing && into->shrinking_to < 0);
  assert(lane->user == into->user && lane->device == into->device);
  lane->closing = true;
  lane->merge_into = into->id;
  SetComing(core, lane, lane->bytes);
  if (lane->holder == nullptr) {
    FinishClosing(core, lane);
  } else {
    RevokeHolder(core, lane, false);
  }
}

void FinishClosing(Core* core, Lane* lane) {
  if (!lane->closing || lane->holder != nullptr || lane->shrinking_to >= 0) return;
  const LaneId into_id = lane->merge_into;
  lane->closing = false;
  lane->merge_into = 0;
  SetComing(core, lane, 0);
  if (into_id == 0) {
    ShrinkLane(core, lane);
    return;
  }
  const Lane* const into = core->LaneOf(into_id);
  if (into == nullptr || into->closing || into->shrinking_to >= 0 ||
      into->bytes < lane->needed_bytes()) {
    return;
  }
  const LaneId id = lane->id;
  const std::set<SessionId> members = lane->members;  // the last one to go takes the lane along
  for (const SessionId member : members) {
    Session* const session = core->Find(member);
    if (HoldsGangMate(*core->state, *into, *session)) continue;
    TakeLane(core, session, {LaneChoice::kJoin, into_id, into->bytes}, session->ephemeral_bytes,
             false);
  }
  assert(core->LaneOf(id) == nullptr || id != into_id);
}

void FinishClosings(Core* core, const Device& device) {
  if (device.coming_bytes == 0) return;
  const std::vector<Lane*> lanes = device.lanes;  // one that closes may go
  for (Lane* const lane : lanes) FinishClosing(core, lane);
}

void OnLaneShrunk(Core* core, const LaneShrunk& event) {
  Lane* const lane = core->LaneOf(event.lane);
  // Of another size it is the answer to an earlier order: the memory is not free yet.
  if (lane == nullptr || lane->shrinking_to < 0 || event.bytes != lane->shrinking_to) return;
  core->devices.insert(lane->device);
  SetLaneBytes(core, lane, lane->shrinking_to);
  lane->shrinking_to = -1;
  SetComing(core, lane, 0);
  if (!lane->members.empty()) return;
  if (lane->bytes == 0) {
    Drop(core, lane);
  } else {
    StartShrinking(core, lane, 0);  // the last one left meanwhile
  }
}

}  // namespace scheduler
