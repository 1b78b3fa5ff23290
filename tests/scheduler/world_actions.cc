// World, second part: performs actions as a daemon would, hands lanes over and moves sessions, and
// refuses what a worker would refuse.
#include <stdexcept>

#include "tests/scheduler/world.h"

namespace scheduler {
void World::Perform(const Action& action) {
  digest_ = (digest_ ^ action.index()) * 1099511628211u;
  std::visit([this](const auto& what) { Do(what); }, action);
}

void World::HandOver(LaneId id) {
  WorldLane* const lane = GetLane(id);
  Tenant* const from = Get(lane->holder);
  from->granted = from->inside = from->revoked = false;
  lane->holder = 0;
  SessionId to = 0;
  for (const SessionId next : lane->successors) {
    const std::map<SessionId, Tenant>::iterator found = tenants_.find(next);
    if (found == tenants_.end() || !CanRun(found->second) || found->second.lane != id) continue;
    to = next;
    break;
  }
  lane->successors.clear();
  if (to != 0) {
    lane->holder = to;
    Get(to)->granted = true;
    Get(to)->revoked = false;
    Get(to)->inside = Get(to)->ephemeral_bytes > 0;
  }
  Tell(Switched{id, from->id, to});
}

// It rests, and goes on in another worker, without what it asked for or was granted last.
void World::Move(Tenant* tenant) {
  const SessionId id = tenant->id;
  if (!tenant->admitted || tenant->ending || tenant->inside || tenant->lane_saved) return;
  tenant->runnable = false;
  Tell(Idle{id, true});
  if (tenant->granted && tenant->resident && tenant->swapping == 0) {
    const LaneId lane = tenant->lane;
    GetLane(lane)->holder = 0;
    tenant->granted = tenant->revoked = false;
    Tell(Switched{lane, id, 0});
  }
  if (tenant->inside || tenant->lane_saved) return;
  tenant->blocked = false;
  if (tenant->persistent_bytes > 0) tenant->persistent_bytes -= Random(tenant->persistent_bytes);
  Tell(SessionMoved{id, tenant->persistent_bytes});
}

void World::Do(const Admit& action) {
  Tenant* const tenant = Get(action.session);
  Require(!tenant->admitted, "admitted twice");
  RequireFirstToComeIn(*tenant);
  tenant->admitted = true;
  digest_ = (digest_ ^ action.session) * 1099511628211u;
}

void World::Do(const Queue& action) { Require(!action.reason.empty(), "queued without a reason"); }

void World::Do(const Reject& action) {
  Require(!Get(action.session)->admitted && !action.reason.empty(), "rejected after admission");
  tenants_.erase(action.session);
}

void World::Do(const AssignLane& action) {
  Tenant* const tenant = Get(action.session);
  const bool is_new = lanes_.count(action.lane) == 0;
  WorldLane* const lane = &lanes_[action.lane];
  if (is_new) *lane = {tenant->user, tenant->device, action.bytes};
  Require(lane->user == tenant->user && lane->device == tenant->device, "a lane spans users");
  const int64_t bytes = lane->shrinking_to < 0 ? lane->bytes : lane->shrinking_to;
  Require(bytes == action.bytes, "a lane of another size");
  if (tenant->lane != action.lane && tenant->granted) {
    Require(!tenant->inside, "moved inside an iteration");
    if (lanes_.count(tenant->lane) != 0) GetLane(tenant->lane)->holder = 0;
    tenant->granted = tenant->revoked = false;
  }
  tenant->lane = action.lane;
  if (!action.answer) return;
  Require(tenant->blocked && tenant->asked_bytes == 0, "an answer to no question");
  tenant->blocked = false;
  const Session& session = *state_.Find(action.session);
  tenant->ephemeral_bytes = session.ephemeral_bytes;
  Require(tenant->ephemeral_bytes <= lane->bytes, "a lane that is too small");
  if (tenant->granted && tenant->runnable) tenant->inside = tenant->ephemeral_bytes > 0;
  digest_ = (digest_ ^ action.lane) * 1099511628211u;
}

void World::Do(const ResizeLane& action) {
  WorldLane* const lane = GetLane(action.lane);
  if (action.bytes > lane->bytes) {
    Require(lane->shrinking_to < 0, "grows while it shrinks");
    lane->bytes = action.bytes;
    return;
  }
  Require(lane->holder == 0, "a lane shrinks under its holder");
  if (lane->bytes == 0) {
    lanes_.erase(action.lane);
  } else {
    lane->shrinking_to = action.bytes;
  }
}

void World::Do(const Grant& action) {
  Tenant* const tenant = Get(action.session);
  WorldLane* const lane = GetLane(action.lane);
  Require(tenant->lane == action.lane && tenant->admitted && !tenant->ending, "granted elsewhere");
  Require(tenant->resident && tenant->swapping == 0, "granted without its memory");
  Require(!state_.devices.at(tenant->device).lost, "granted on a lost device");
  if (tenant->lane_saved) {  // goes on inside its iteration
    Require(lane->holder == tenant->id, "came back to another's lane");
    tenant->lane_saved = false;
  } else {
    Require(lane->holder == 0 && lane->shrinking_to < 0, "a lane with two holders");
    Require(CanRun(*tenant), "granted, but cannot run");
    RequireNobodyPassed(action);
  }
  lane->holder = tenant->id;
  lane->successors.clear();
  tenant->granted = true;
  tenant->revoked = false;
  tenant->inside = tenant->ephemeral_bytes > 0;
  digest_ = (digest_ ^ action.session) * 1099511628211u;
}

// Where a turn is promised, nobody overtakes who has waited for too long; whoever comes back from
// the host inside an iteration has its turn already.
void World::RequireNobodyPassed(const Grant& action) {
  const Session& session = *state_.Find(action.session);
  const std::set<Key>& by_age = state_.lanes.at(action.lane).by_age;
  if (!state_.policy->PromisesTurn() || by_age.empty() || session.gang()) return;
  const int64_t oldest_us = by_age.begin()->rank;
  Require(now_us_ - oldest_us < state_.limits.starvation_us || session.waited_since_us == 0 ||
              session.waited_since_us <= oldest_us,
          "overtakes one that starves");
}

void World::Do(const Revoke& action) {
  Tenant* const tenant = Get(action.session);
  Require(GetLane(action.lane)->holder == tenant->id, "revoked, but not granted");
  tenant->revoked = true;
}

void World::Do(const Successors& action) {
  WorldLane* const lane = GetLane(action.lane);
  for (const SessionId id : action.sessions) {
    Require(Get(id)->lane == action.lane && CanRun(*Get(id)), "a successor that can't run");
  }
  lane->successors = action.sessions;
}

void World::Do(const SwapOut& action) {
  Tenant* const tenant = Get(action.session);
  Require(tenant->resident && tenant->swapping == 0, "swapped out twice");
  Require(!tenant->granted || tenant->blocked || !tenant->inside, "swapped out while it runs");
  Require(action.with_lane == tenant->inside, "live memory of a lane is lost");
  tenant->swapping = -1;
  tenant->lane_saved = tenant->inside;
  tenant->resident = true;
  RequireRoomOnHost(*tenant);
}

void World::Do(const SwapIn& action) {
  Tenant* const tenant = Get(action.session);
  Require(!tenant->resident && tenant->swapping == 0 && tenant->lane != 0, "swapped in twice");
  Require(action.with_lane == tenant->lane_saved, "live memory of a lane is lost");
  tenant->swapping = 1;
  if (!action.with_lane) return;
  WorldLane* const lane = GetLane(tenant->lane);
  Require(lane->holder == 0, "comes back into another's lane");
  lane->holder = tenant->id;
  tenant->granted = tenant->inside = true;
  tenant->revoked = false;
}

void World::Do(const GrantMemory& action) {
  Tenant* const tenant = Get(action.session);
  Require(tenant->blocked && tenant->asked_bytes == action.bytes, "memory nobody asked for");
  Require(tenant->resident, "memory for one that is swapped out");
  tenant->blocked = false;
  tenant->persistent_bytes += action.bytes;
}

void World::Do(const RefuseMemory& action) {
  Tenant* const tenant = Get(action.session);
  Require(tenant->blocked && !action.reason.empty(), "refused without a question");
  tenant->blocked = false;
  if (action.reason.find("swapped jobs is used up") == std::string::npos) return;
  const std::map<uint32_t, int64_t>::iterator still = still_since_us_.find(tenant->device);
  Require(still != still_since_us_.end() && now_us_ - still->second >= state_.limits.standstill_us,
          "refused though somebody may go on");
  Require(tenant->resident && tenant->swapping == 0, "refused on its way");
  for (const std::pair<const SessionId, Tenant>& entry : tenants_) {
    const Tenant& other = entry.second;
    const bool here = other.device == tenant->device && other.resident && !other.ending;
    Require(!here || other.persistent_bytes == 0 || other.blocked || other.id <= tenant->id,
            "refused for what came later and rests");
  }
  Require(tenant->asked_bytes > 0 || tenant->asked_lane_bytes > tenant->ephemeral_bytes ||
              tenant->ephemeral_bytes == 0,
          "refused its own lane");
}

void World::Do(const Wait& action) { Require(!action.reason.empty(), "waits without a reason"); }

void World::Do(const Report& action) {
  Require(Get(action.session)->revoked && action.overstay_us > 0, "reported without cause");
}

}  // namespace scheduler
