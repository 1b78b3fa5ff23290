// Memory: accounts, requests that wait, and who is served when some becomes free.
#include <algorithm>
#include <cassert>
#include <utility>

#include "scheduler/core.h"
#include "scheduler/why.h"

namespace scheduler {
namespace {

constexpr int kScanMax = 16;  // a decision looks at no more of those who wait

bool UserFits(const State& state, const Session& session, int64_t bytes) {
  const std::map<uint32_t, User>::const_iterator user = state.users.find(session.about.user);
  if (user == state.users.end() || user->second.memory_bytes == 0 || bytes <= 0) return true;
  return user->second.UsedOn(session.about.device) + bytes <= user->second.memory_bytes;
}

// What persistent memory of the session's would have to be found for `bytes` more.
int64_t Beyond(const Session& session, int64_t bytes) {
  return std::max<int64_t>(0, session.persistent_bytes + bytes - session.charged_bytes);
}

void Block(Core* core, Session* session, Need need, int64_t bytes) {
  session->need = need;
  session->need_bytes = bytes;
  session->need_comes = false;
  session->need_us = core->now_us;
  core->devices.insert(session->about.device);
  List(core, session);
  Lane* const lane = core->LaneOf(session->lane);
  if (lane != nullptr && lane->holder == session && HolderStays(*lane)) KeepLane(core, lane);
  if (session->place.residence == Residence::kDevice) {
    core->DeviceOf(*session)->needs.insert(session->need_key());
  } else if (session->place.residence == Residence::kHost) {
    Claim(core, session);  // it asked before it heard that it is on the host
  }
  core->actions.push_back(
      Wait{session->id, Sentence(Why(*core->state, session->id, core->now_us))});
  LeaveIfEvicted(core, session);
}

void ForgetLane(Core* core, Session* session) {
  if (!session->uses_lane && session->ephemeral_bytes != 0) SetEphemeral(core, session, 0);
}

void GivePersistent(Core* core, Session* session, int64_t bytes) {
  session->persistent_bytes += bytes;
  Account(core, session);
  core->actions.push_back(GrantMemory{session->id, bytes});
}

// The lane in which `bytes` are possible now, the session being where it is.
LaneChoice LaneFor(Core* core, const Session& session, int64_t bytes) {
  const Lane* const own = core->LaneOf(session.lane);
  if (own == nullptr) return {};
  // Inside an iteration it keeps what it has, also of a lane that closes after it.
  const bool still = session.inside || (!own->closing && own->shrinking_to < 0);
  if (still && own->bytes >= bytes) return {LaneChoice::kJoin, own->id, own->bytes};
  const bool grows = still && !own->closing && Fits(*core->state, session, bytes - own->bytes);
  if (grows && (session.inside || own->members.size() == 1)) {
    return {LaneChoice::kGrow, own->id, bytes};
  }
  if (session.inside) return {};
  // Its worker may have handed the lane to a successor already, and Switched is on its way: until
  // then no other session may be granted that lane.
  if (session.granted && session.revoked) return {};
  return FindLane(*core->state, session, 0, bytes);
}

bool ServeNeed(Core* core, Session* session) {
  if (session->need == Need::kPersistent) {
    const int64_t bytes = session->need_bytes;
    if (!Fits(*core->state, *session, Beyond(*session, bytes))) return false;
    Unblock(core, session);
    GivePersistent(core, session, bytes);
  } else {
    const int64_t bytes = session->need_bytes;
    const LaneChoice choice = LaneFor(core, *session, bytes);
    if (choice.kind == LaneChoice::kNone) return false;
    Unblock(core, session);
    session->uses_lane = true;
    TakeLane(core, session, choice, bytes, true);
  }
  return true;
}

int64_t WantedBytes(const State& state, const Session& session) {
  if (session.need == Need::kPersistent) return Beyond(session, session.need_bytes);
  return LeastBytes(state, session, 0, session.need_bytes);
}

// Of those who are blocked, the oldest first; true: one of them still waits.
bool ServeNeeds(Core* core, Device* device) {
  std::vector<Session*> first;
  first.reserve(kScanMax);
  for (const Key& key : device->needs) {
    if (first.size() == kScanMax) break;
    first.push_back(core->Find(key.session));
  }
  Session* oldest = nullptr;
  for (Session* const session : first) {
    if (!ServeNeed(core, session) && oldest == nullptr) oldest = session;
  }
  if (oldest == nullptr) return false;
  device->kept_bytes = WantedBytes(*core->state, *oldest);
  MakeRoom(core, device, oldest, device->kept_bytes);
  return true;
}

// A lane for a session that comes: one that nobody holds when it brings live ephemeral memory.
LaneChoice LaneForClaim(Core* core, Session* session, int64_t persistent, int64_t ephemeral) {
  const LaneChoice choice = FindLane(*core->state, *session, persistent, ephemeral);
  if (!session->place.lane_saved || choice.lane == 0) return choice;
  Lane* const lane = core->LaneOf(choice.lane);
  if (lane->holder == 0 && (lane->reserved == 0 || lane->reserved == session->id)) return choice;
  Device* const device = core->DeviceOf(*session);
  if (lane->reserved == session->id) {
    device->reserves = session->id;
  } else if (lane->reserved == 0 && device->reserves == 0) {
    Unreserve(core, session);
    device->reserves = session->id;
    lane->reserved = session->id;
    session->reserving = lane->id;
    if (lane->holder != 0) RevokeHolder(core, lane, false);
  }
  return {};
}

void LetIn(Core* core, Session* session, const LaneChoice& choice, int64_t persistent,
           int64_t ephemeral) {
  Unclaim(core, session);
  session->promised_bytes = persistent;
  const bool queued = session->phase == Phase::kQueued;
  if (!queued) session->Move({Residence::kComingIn, session->place.lane_saved});
  session->resident_us = core->now_us;
  if (queued) {
    session->phase = Phase::kAdmitted;
    --core->state->queued;
    ++core->state->admitted;
    ++core->UserOf(*session)->admitted;
    core->actions.push_back(Admit{session->id});
  }
  Account(core, session);
  session->answered_bytes = session->ephemeral_bytes;
  TakeLane(core, session, choice, ephemeral, false);
  if (queued) return;
  session->need_comes = session->need != Need::kNone;
  ++core->DeviceOf(*session)->swapping;
  core->actions.push_back(SwapIn{session->id, session->place.lane_saved != 0});
  if (session->place.lane_saved) {
    Hold(core, core->LaneOf(session->lane), session);
    session->inside = true;
  }
}

// What a session comes with, and what it asked for before it went.
struct Claimed {
  explicit Claimed(const Session& session)
      : persistent(session.phase == Phase::kQueued ? session.promised_bytes
                                                   : session.persistent_bytes),
        ephemeral(session.ephemeral_bytes) {
    if (session.need == Need::kPersistent) persistent += session.need_bytes;
    if (session.need == Need::kLane) ephemeral = std::max(ephemeral, session.need_bytes);
  }
  int64_t persistent;
  int64_t ephemeral;
};

bool ServeClaim(Core* core, Session* session, const Claimed& claimed) {
  const LaneChoice choice = LaneForClaim(core, session, claimed.persistent, claimed.ephemeral);
  if (choice.kind == LaneChoice::kNone) return false;
  LetIn(core, session, choice, claimed.persistent, claimed.ephemeral);
  return true;
}

// Whoever has waited past what is promised, the oldest first; then as the policy wants.
std::vector<Session*> FirstClaims(const Core& core, const Device& device) {
  std::vector<Session*> first;
  first.reserve(kScanMax);
  for (const Index::value_type& claim : device.oldest_claims) {
    if (first.size() == kScanMax / 2 || !Starves(core, *claim.second)) break;
    first.push_back(claim.second);
  }
  for (const Index::value_type& claim : device.claims) {
    if (first.size() >= kScanMax) break;
    first.push_back(claim.second);
  }
  return first;
}

void TryClaims(Core* core, Device* device, bool room_is_taken) {
  for (Session* const session : FirstClaims(*core, *device)) {
    if (session->claim.session == 0) continue;  // it was served: it starved, too
    if (!HasPlace(*core->state, *session)) continue;
    if (core->now_us - session->swap_failed_us < core->state->limits.swap_slice_us) continue;
    const Claimed claimed(*session);
    if (ServeClaim(core, session, claimed)) continue;
    if (!UserFits(*core->state, *session, 1)) continue;  // its user's affair alone
    if (!room_is_taken) {
      MakeRoom(core, device, session,
               LeastBytes(*core->state, *session, claimed.persistent, claimed.ephemeral));
    }
    // What is made room for has to find it: only those who were never here may be passed.
    if (!core->state->policy->Backfills() || session->phase != Phase::kQueued) return;
    room_is_taken = true;
  }
}

// A lane is kept free for as long as its claim is the one that is served.
void ServeClaims(Core* core, Device* device, bool room_is_taken) {
  const SessionId before = std::exchange(device->reserves, 0);
  TryClaims(core, device, room_is_taken);
  if (before == 0 || before == device->reserves) return;
  if (Session* const session = core->Find(before)) Unreserve(core, session);
}

}  // namespace

void Account(Core* core, Session* session) {
  Device* const device = core->DeviceOf(*session);
  const int64_t charged =
      session->on_device() ? std::max(session->persistent_bytes, session->promised_bytes) : 0;
  device->charged_bytes += charged - session->charged_bytes;
  core->UserOf(*session)->used_bytes[device->id] += charged - session->charged_bytes;
  session->charged_bytes = charged;
  const int64_t coming = session->place.residence == Residence::kGoingOut ? charged : 0;
  device->coming_bytes += coming - session->coming_bytes;
  session->coming_bytes = coming;
  const bool can_go = session->phase == Phase::kAdmitted && charged > 0 && !session->granted &&
                      session->place.residence == Residence::kDevice;
  if (session->resident.session != 0) {
    device->lru.erase(session->resident);
    device->youngest.erase({-static_cast<int64_t>(session->arrival), session->arrival});
    session->resident = Key();
  }
  if (!can_go) return;
  session->resident = {std::max(session->granted_us, session->resident_us), session->arrival,
                       session->id};
  device->lru.emplace(session->resident, session);
  const Key latest = {-static_cast<int64_t>(session->arrival), session->arrival, session->id};
  device->youngest.emplace(latest, session);
}

bool HasPlace(const State& state, const Session& session) {
  if (session.phase != Phase::kQueued) return true;
  const std::map<uint32_t, User>::const_iterator user = state.users.find(session.about.user);
  const bool within = user == state.users.end() || user->second.sessions_max == 0 ||
                      user->second.admitted < user->second.sessions_max;
  return state.admitted < state.limits.sessions_max && within;
}

void SetLaneBytes(Core* core, Lane* lane, int64_t bytes) {
  core->state->devices.at(lane->device).lanes_bytes += bytes - lane->bytes;
  core->state->users[lane->user].used_bytes[lane->device] += bytes - lane->bytes;
  lane->bytes = bytes;
}

bool Fits(const State& state, const Session& session, int64_t bytes) {
  const Device& device = state.devices.at(session.about.device);
  if (bytes <= 0) return true;
  const int64_t kept = session.on_device() ? 0 : device.kept_bytes;
  return !device.lost && device.free_bytes() - kept >= bytes && UserFits(state, session, bytes);
}

bool AloneFits(const State& state, const Session& session, int64_t persistent, int64_t ephemeral,
               std::string* why) {
  const int64_t bytes = persistent + ephemeral;
  const Device& device = state.devices.at(session.about.device);
  if (session.about.limit_bytes > 0 && bytes > session.about.limit_bytes) {
    *why = "it needs " + Bytes(bytes) + ", its limit is " + Bytes(session.about.limit_bytes);
    return false;
  }
  const std::map<uint32_t, User>::const_iterator user = state.users.find(session.about.user);
  if (user != state.users.end() && user->second.memory_bytes > 0 &&
      bytes > user->second.memory_bytes) {
    *why = "it needs " + Bytes(bytes) + ", its user may have " + Bytes(user->second.memory_bytes);
    return false;
  }
  const int64_t room = device.capacity_bytes - device.overhead_bytes - device.reserve_bytes;
  if (bytes <= room) return true;
  *why = "it needs " + Bytes(bytes) + ", the device has room for " + Bytes(room);
  return false;
}

void OnMemoryNeeded(Core* core, Session* session, int64_t bytes) {
  std::string why;
  if (!AloneFits(*core->state, *session, session->persistent_bytes + bytes,
                 session->asked_lane_bytes(), &why)) {
    core->actions.push_back(RefuseMemory{session->id, why});
  } else if (session->place.residence == Residence::kDevice &&
             Fits(*core->state, *session, Beyond(*session, bytes))) {
    GivePersistent(core, session, bytes);
  } else {
    ForgetLane(core, session);  // what it needs now may be what is kept for its lane
    Block(core, session, Need::kPersistent, bytes);
  }
}

void OnMemoryWanted(Core* core, Session* session, int64_t bytes) {
  std::string why;
  const bool fits = AloneFits(*core->state, *session, session->persistent_bytes + bytes,
                              session->asked_lane_bytes(), &why) &&
                    session->place.residence == Residence::kDevice &&
                    core->state->devices.at(session->about.device).needs.empty() &&
                    Fits(*core->state, *session, Beyond(*session, bytes));
  if (fits) {
    GivePersistent(core, session, bytes);
  } else {
    core->actions.push_back(RefuseMemory{session->id, std::move(why), /*waited=*/false});
  }
}

void OnLaneNeeded(Core* core, Session* session, int64_t bytes) {
  std::string why;
  const bool more = bytes > session->asked_lane_bytes();  // a limit takes nothing away
  if (more && !AloneFits(*core->state, *session, session->persistent_bytes, bytes, &why)) {
    core->actions.push_back(RefuseMemory{session->id, why});
    return;
  }
  const LaneChoice choice = session->place.residence == Residence::kDevice
                                ? LaneFor(core, *session, bytes)
                                : LaneChoice();
  if (choice.kind == LaneChoice::kNone) {
    Block(core, session, Need::kLane, bytes);
    return;
  }
  core->devices.insert(session->about.device);
  session->uses_lane = true;
  TakeLane(core, session, choice, bytes, true);
}

void OnMoved(Core* core, Session* session, const SessionMoved& event) {
  const int64_t lost = std::max<int64_t>(0, session->persistent_bytes - event.persistent_bytes);
  session->persistent_bytes -= lost;
  if (session->place.residence != Residence::kDevice) core->state->swapped_bytes -= lost;
  core->devices.insert(session->about.device);
  if (session->need_comes) SetEphemeral(core, session, session->answered_bytes);
  Unblock(core, session);
  Account(core, session);
  Claim(core, session);
}

void ForgetEstimate(Core* core, Session* session) {
  session->promised_bytes = 0;
  ForgetLane(core, session);
  Account(core, session);
}

void Unblock(Core* core, Session* session) {
  if (session->need == Need::kNone) return;
  session->need = Need::kNone;
  session->need_comes = false;
  core->devices.insert(session->about.device);
  core->DeviceOf(*session)->needs.erase(session->need_key());
  List(core, session);
}

void ServeMemory(Core* core, Device* device) {
  if (device->lost) return;
  FinishClosings(core, *device);
  RetryEvictions(core, device);
  device->kept_bytes = 0;
  const bool waits = !device->needs.empty() && ServeNeeds(core, device);
  if (!device->claims.empty()) ServeClaims(core, device, waits);
}

}  // namespace scheduler
