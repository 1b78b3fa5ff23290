// Making room: lanes give back what they don't need and merge, then persistent memory of those who
// don't run goes to the host, least recently granted first. Nothing here is done at once: what is
// begun is counted as coming, and whoever waits is served when it has come.
#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

#include "scheduler/core.h"

namespace scheduler {
namespace {

constexpr int kVictimScanMax = 16;  // victims that a decision looks at, from either end

void ShrinkLanes(Core* core, Device* device, int64_t bytes) {
  for (Lane* const lane : device->lanes) {
    if (device->free_bytes() + device->coming_bytes >= bytes) return;
    ShrinkLane(core, lane);
  }
}

bool CanClose(const Lane& lane) {
  return !lane.closing && lane.shrinking_to < 0 && lane.reserved == 0 && !HolderStays(lane);
}

bool HasGang(Core* core, const Lane& lane) {
  for (const SessionId member : lane.members) {
    if (core->Find(member)->gang()) return true;
  }
  return false;
}

struct Merge {
  Lane* lane = nullptr;
  Lane* into = nullptr;  // its user's largest, of equals the first
};

// The merges of lanes that are possible, the largest lanes first. A full device often asks in vain,
// so a user with one lane costs little.
std::vector<Merge> Merges(const Device& device) {
  using Candidate = std::tuple<uint32_t, int64_t, size_t>;  // user, -bytes, place
  std::vector<Candidate> lanes;
  lanes.reserve(device.lanes.size());
  for (size_t i = 0; i < device.lanes.size(); ++i) {
    const Lane& lane = *device.lanes[i];
    if (CanClose(lane)) lanes.push_back({lane.user, -lane.bytes, i});
  }
  std::sort(lanes.begin(), lanes.end());
  std::vector<Merge> merges;
  Lane* largest = nullptr;
  for (const Candidate& candidate : lanes) {
    Lane* const lane = device.lanes[std::get<2>(candidate)];
    if (largest == nullptr || lane->user != largest->user) {
      largest = lane;
    } else if (lane->bytes != 0) {
      merges.push_back({lane, largest});
    }
  }
  std::sort(merges.begin(), merges.end(), [](const Merge& one, const Merge& other) {
    return std::make_pair(-one.lane->bytes, one.lane->id) <
           std::make_pair(-other.lane->bytes, other.lane->id);
  });
  return merges;
}

bool IsMovable(const State& state, const Session& session) {
  return session.phase == Phase::kAdmitted && session.place.residence == Residence::kDevice &&
         !session.about.fixed && SwapSpaceFits(state, session);
}

void MergeLanes(Core* core, Device* device, int64_t bytes) {
  for (const Merge& merge : Merges(*device)) {
    if (device->free_bytes() + device->coming_bytes >= bytes) return;
    if (!HasGang(core, *merge.lane)) MergeLane(core, merge.lane, merge.into);
  }
}

bool CanSwap(const Core& core, const Session& session) {
  return IsMovable(*core.state, session) &&
         core.now_us - session.swap_failed_us >= core.state->limits.swap_slice_us;
}

bool MayDisplace(const Core& core, const Session& waiting, const Session& resident) {
  if (waiting.id == resident.id || !CanSwap(core, resident)) return false;
  const bool at_rest = resident.paused() || (!resident.runnable && resident.need == Need::kNone);
  if (at_rest && !resident.inside) return true;
  if (Starves(core, resident) || core.now_us < resident.promised_us) return false;
  if (Starves(core, waiting) && resident.need == Need::kNone &&
      core.now_us - resident.resident_us >= core.state->limits.swap_slice_us) {
    return true;
  }
  return core.state->policy->Displaces(*core.state, waiting, resident, core.now_us);
}

void SwapVictims(Core* core, Device* device, Session* session, int64_t bytes, const Index& order) {
  std::vector<Session*> victims;
  int64_t found = device->free_bytes() + device->coming_bytes;
  int scanned = 0;
  for (const Index::value_type& resident : order) {
    if (found >= bytes || scanned++ == kVictimScanMax) break;
    if (!MayDisplace(*core, *session, *resident.second)) continue;
    found += resident.second->charged_bytes;
    victims.push_back(resident.second);
  }
  for (Session* const victim : victims) BeginSwapOut(core, victim);
}

// Somebody who runs has to stop first; it is a victim like others when it has.
void StopVictim(Core* core, Device* device, const Session& session) {
  Lane* found = nullptr;
  for (Lane* const lane : device->lanes) {
    const Session* const holder = lane->holder;
    if (holder == nullptr || (holder->need != Need::kNone && holder->inside)) continue;
    if (!MayDisplace(*core, session, *holder) || holder->charged_bytes == 0) continue;
    if (holder->revoked) return;  // one at a time
    if (found == nullptr || found->holder->arrival < holder->arrival) found = lane;
  }
  if (found != nullptr) RevokeHolder(core, found, false);
}

}  // namespace

int64_t LeastBytes(const State& state, const Session& session, int64_t persistent,
                   int64_t ephemeral) {
  int64_t largest = 0;
  for (const Lane* const lane : state.devices.at(session.about.device).lanes) {
    if (lane->user != session.about.user || lane->closing || lane->shrinking_to >= 0) continue;
    // Inside an iteration its own lane alone can help.
    if (session.inside && lane->id != session.lane) continue;
    largest = std::max(largest, lane->bytes);
  }
  return persistent + std::max<int64_t>(0, ephemeral - largest);
}

void MakeRoom(Core* core, Device* device, Session* session, int64_t bytes) {
  if (device->free_bytes() + device->coming_bytes >= bytes) return;
  ShrinkLanes(core, device, bytes);
  if (session->phase != Phase::kQueued || core->state->policy->MergesForAdmission()) {
    MergeLanes(core, device, bytes);
  }
  if (device->free_bytes() + device->coming_bytes >= bytes) return;
  SwapVictims(core, device, session, bytes, device->lru);
  if (device->free_bytes() + device->coming_bytes >= bytes) return;
  SwapVictims(core, device, session, bytes, device->youngest);
  if (device->free_bytes() + device->coming_bytes >= bytes) return;
  StopVictim(core, device, *session);
}

bool MayLeave(const State& state, const Session& session) {
  return IsMovable(state, session) && !session.runnable && session.need == Need::kNone;
}

bool SwapSpaceFits(const State& state, const Session& session) {
  const int64_t lane = session.inside ? session.ephemeral_bytes : 0;
  return state.swapped_bytes + session.persistent_bytes + lane <= state.limits.swap_bytes;
}

namespace {

// The sessions that hold memory and get nowhere, and what keeps them here.
struct Holders {
  Session* youngest = nullptr;            // of those who can go
  bool asking = false;                    // one of them waits for memory itself
  const Session* last_at_rest = nullptr;  // the last who came of those who do not
  bool movable = false;                   // one of them may go, if not now
  bool fixed = false;                     // one of them never goes
  bool no_space = false;                  // one of them finds no room on the host
  bool leaving = false;                   // one of them ends
};

Holders HoldersOf(Core* core, const Device& device, const Session& waiting) {
  std::vector<Session*> candidates;
  candidates.reserve(device.youngest.size() + device.lanes.size());
  for (const Index::value_type& resident : device.youngest) candidates.push_back(resident.second);
  for (const Lane* const lane : device.lanes) {
    if (lane->holder != nullptr) candidates.push_back(lane->holder);
  }
  Holders holders;
  for (Session* const other : candidates) {
    if (other == &waiting || other->charged_bytes == 0 || other->progressing()) continue;
    (other->about.fixed ? holders.fixed : holders.movable) = true;
    holders.asking |= other->need != Need::kNone;
    const bool is_last =
        holders.last_at_rest == nullptr || holders.last_at_rest->arrival < other->arrival;
    if (other->need == Need::kNone && is_last) holders.last_at_rest = other;
    holders.leaving |= other->phase == Phase::kEnding;
    holders.no_space |= !other->about.fixed && !SwapSpaceFits(*core->state, *other);
    if (!CanSwap(*core, *other)) continue;
    if (holders.youngest == nullptr || other->arrival > holders.youngest->arrival) {
      holders.youngest = other;
    }
  }
  return holders;
}

// No session gets anywhere, and none can leave. The newest is refused, never an earlier one:
//
//   who asks for more        who else has memory here         what happens
//   the last who came        earlier ones rest, or ask        it is refused
//   earlier ones             a later one asks, too            the later one is refused
//   one, or several          a later one rests                they wait until it goes on or ends
//   nobody                   who is not in waits to come      it waits until somebody leaves
//
// A session that asks for its lane again has it at once. A rest between two pieces of work is no
// standstill: a session that rests for a moment may give back what is needed.
void RefuseLast(Core* core, Device* device, const Holders& holders, const char* reason,
                int64_t refuse_us) {
  if (device->needs.empty()) return;
  const Session* const rests = holders.last_at_rest;
  if (rests != nullptr && rests->arrival > device->needs.rbegin()->arrival) return;
  if (core->now_us < refuse_us) {
    device->refuse_us = std::min(refuse_us, core->now_us + core->state->limits.standstill_us);
    return;
  }
  Session* const refused = core->Find(device->needs.rbegin()->session);
  core->actions.push_back(RefuseMemory{refused->id, reason});
  Unblock(core, refused);
}

}  // namespace

void BreakWait(Core* core, Device* device, Session* session, int64_t refuse_us) {
  const Holders holders = HoldersOf(core, *device, *session);
  Session* const youngest = holders.youngest;
  if (youngest != nullptr && youngest->granted && youngest->need == Need::kNone) {
    // At a boundary, with nothing to do: it can go when its lane is back.
    RevokeHolder(core, core->LaneOf(youngest->lane), false);
    return;
  }
  if (youngest != nullptr) {
    BeginSwapOut(core, youngest);
    return;
  }
  if (holders.leaving) return;
  if (!holders.fixed || holders.movable) {
    // Without a want of space one failed to swap: it is tried again.
    if (holders.no_space)
      RefuseLast(core, device, holders, "the host memory for swapped jobs is used up", refuse_us);
    return;
  }
  if (!holders.asking) return;  // they rest: they may go on, or end
  if (session->charged_bytes != 0 && CanSwap(*core, *session)) {
    BeginSwapOut(core, session);
    return;
  }
  RefuseLast(core, device, holders, "the memory is held by jobs that can't leave the device",
             core->now_us);
}

}  // namespace scheduler
