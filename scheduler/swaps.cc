// Swaps: how a session's memory leaves for the host and comes back, what a failed way leaves
// behind, and the claims of those who wait to come in.
#include <algorithm>
#include <cassert>
#include <utility>

#include "scheduler/core.h"

namespace scheduler {

void BeginSwapOut(Core* core, Session* session) {
  assert(!session->granted || session->need != Need::kNone || session->paused());
  AwaitSwapOut(core, session);
  core->actions.push_back(SwapOut{session->id, session->inside});
}

void AwaitSwapOut(Core* core, Session* session) {
  assert(session->phase == Phase::kAdmitted);
  session->Move({Residence::kGoingOut, session->inside});
  session->resident_us = core->now_us;
  session->saved_lane_bytes = session->inside ? session->ephemeral_bytes : 0;
  core->state->swapped_bytes += session->host_bytes();
  ++core->DeviceOf(*session)->swapping;
  core->DeviceOf(*session)->needs.erase(session->need_key());
  core->devices.insert(session->about.device);
  Account(core, session);
  List(core, session);
}

void LeaveIfEvicted(Core* core, Session* session) {
  if (!session->evicted() || session->phase != Phase::kAdmitted) return;
  if (session->place.residence != Residence::kDevice) return;
  // A session that waits for memory comes to no boundary.
  if (session->granted && session->need == Need::kNone) return;
  // Other sessions may have taken the room that the host had when this session was dismissed. An
  // eviction goes on without a look: the worker says when the host has no room.
  if (session->pause == Pause::kDismissed && !SwapSpaceFits(*core->state, *session)) {
    EndDismissal(session);
    core->devices.insert(session->about.device);
    List(core, session);
    Claim(core, session);
    return;
  }
  BeginSwapOut(core, session);
}

void RetryEvictions(Core* core, Device* device) {
  if (device->retry_us == 0 || device->retry_us > core->now_us) return;
  device->retry_us = 0;
  const Index residents = device->lru;  // who goes leaves it
  for (const Index::value_type& resident : residents) LeaveIfEvicted(core, resident.second);
}

namespace {

void AwaitRoom(Core* core, Session* session) {
  if (session->need == Need::kNone) return;
  core->DeviceOf(*session)->needs.insert(session->need_key());
}

void Stay(Core* core, Session* session) {
  core->state->swapped_bytes -= session->host_bytes();
  session->Move({});
  session->saved_lane_bytes = 0;
  if (session->enters()) session->inside = true;  // work came for it meanwhile
  Account(core, session);
  AwaitRoom(core, session);
  List(core, session);
}

// A need from before the session was let in was counted then, and is met now. A need from the way
// waits for room like those of sessions on the device.
void AnswerNeed(Core* core, Session* session) {
  if (!session->need_comes) {
    AwaitRoom(core, session);
    return;
  }
  if (session->need == Need::kPersistent) {
    session->persistent_bytes += session->need_bytes;
    core->actions.push_back(GrantMemory{session->id, session->need_bytes});
  } else {
    session->uses_lane = true;
    const Lane& lane = *core->LaneOf(session->lane);
    const int64_t bytes = lane.shrinking_to >= 0 ? lane.shrinking_to : lane.bytes;
    core->actions.push_back(AssignLane{session->id, session->lane, bytes, true});
  }
  session->need = Need::kNone;
  session->need_comes = false;
}

void OnSwappedIn(Core* core, Session* session, bool ok) {
  if (!ok) {
    session->Move({Residence::kHost, session->place.lane_saved});
    LeaveLane(core, session);
    session->ephemeral_bytes = session->answered_bytes;
    session->need_comes = false;
    Account(core, session);
    Claim(core, session);
    return;
  }
  core->state->swapped_bytes -= session->host_bytes();
  session->Move({});
  session->saved_lane_bytes = 0;
  AnswerNeed(core, session);
  session->promised_bytes = 0;
  Account(core, session);
  if (session->granted && session->phase == Phase::kAdmitted) {  // goes on inside its iteration
    core->actions.push_back(Grant{session->id, session->lane});
    // What was revoked while it came back is revoked now that it is there.
    if (session->paused() || std::exchange(session->revoked, false)) {
      session->revoked = false;
      RevokeHolder(core, core->LaneOf(session->lane), false);
    }
  }
  List(core, session);
  LeaveIfEvicted(core, session);
}

}  // namespace

void OnSwapped(Core* core, Session* session, const Swapped& event) {
  const Residence expected = event.out ? Residence::kGoingOut : Residence::kComingIn;
  if (session->place.residence != expected) return;
  Device* const device = core->DeviceOf(*session);
  core->devices.insert(device->id);
  --device->swapping;
  if (!event.out) {
    session->moved_in_us = core->now_us - session->resident_us;
    session->busy_before_us = session->busy_us;
  }
  session->resident_us = core->now_us;
  session->swap_failed_us = event.ok ? -kUnlimited : core->now_us;
  if (event.out) EndDismissal(session);
  if (!event.ok) {
    device->retry_us = core->now_us + core->state->limits.swap_slice_us;
  }
  if (!event.out) {
    OnSwappedIn(core, session, event.ok);
    return;
  }
  if (!event.ok) {
    Stay(core, session);
    return;
  }
  session->Move({Residence::kHost, session->place.lane_saved});
  LeaveLane(core, session);
  Account(core, session);
  Claim(core, session);
}

void Claim(Core* core, Session* session) {
  Unclaim(core, session);
  const bool comes_back = session->phase == Phase::kAdmitted &&
                          session->place.residence == Residence::kHost && !session->paused() &&
                          (session->runnable || session->need != Need::kNone);
  if (session->phase != Phase::kQueued && !comes_back) return;
  if (session->waiting_us == 0) session->waiting_us = core->now_us;
  session->claim = {core->state->policy->Rank(*core->state, *session), session->arrival,
                    session->id};
  session->claim_age = {session->waiting_us, session->arrival, session->id};
  core->DeviceOf(*session)->claims.emplace(session->claim, session);
  core->DeviceOf(*session)->oldest_claims.emplace(session->claim_age, session);
  core->devices.insert(session->about.device);
}

void Unreserve(Core* core, Session* session) {
  if (Lane* const lane = core->LaneOf(session->reserving)) {
    lane->reserved = 0;
    core->devices.insert(lane->device);
  }
  session->reserving = 0;
}

void Unclaim(Core* core, Session* session) {
  if (session->claim.session != 0) {
    core->DeviceOf(*session)->claims.erase(session->claim);
    core->DeviceOf(*session)->oldest_claims.erase(session->claim_age);
    session->claim = Key();
  }
  Unreserve(core, session);
}

}  // namespace scheduler
