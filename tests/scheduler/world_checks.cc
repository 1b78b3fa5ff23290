// World, third part: what is promised of users' quotas, of the host's memory and of fifo's order,
// and that nothing is left of those who have gone.
#include <stdexcept>

#include "tests/scheduler/world.h"

namespace scheduler {
namespace {

int64_t HostBytes(const Tenant& tenant) {
  return tenant.persistent_bytes + (tenant.lane_saved ? tenant.ephemeral_bytes : 0);
}

}  // namespace

void World::CheckQuotas() {
  for (const std::pair<const uint32_t, User>& entry : state_.users) {
    const User& user = entry.second;
    std::map<uint32_t, int64_t> used;
    uint32_t admitted = 0;
    for (const std::pair<const SessionId, Tenant>& one : tenants_) {
      const Tenant& tenant = one.second;
      if (tenant.user != entry.first) continue;
      admitted += tenant.admitted;
      if (tenant.resident || tenant.swapping != 0) used[tenant.device] += tenant.persistent_bytes;
    }
    for (const std::pair<const LaneId, WorldLane>& lane : lanes_) {
      if (lane.second.user == entry.first) used[lane.second.device] += lane.second.bytes;
    }
    Require(admitted == user.admitted, "a user's sessions are counted wrong");
    Require(user.sessions_max == 0 || admitted <= user.sessions_max, "a user's quota of sessions");
    for (const std::pair<const uint32_t, int64_t>& bytes : used) {
      Require(user.memory_bytes == 0 || bytes.second <= user.memory_bytes,
              "a user's quota of memory");
    }
  }
}

// On its way in either direction it is on the host as well.
void World::CheckSwapSpace() {
  int64_t all = 0, there = 0;
  for (const std::pair<const SessionId, Tenant>& entry : tenants_) {
    const Tenant& tenant = entry.second;
    if (!tenant.resident || tenant.swapping != 0) all += HostBytes(tenant);
    if (!tenant.resident) there += HostBytes(tenant);
  }
  Require(state_.swapped_bytes == all, "what is on the host is counted wrong");
  Require(there <= state_.limits.swap_bytes, "more on the host than the swap space holds");
}

// Only who people evict goes without a look at the swap space: its worker refuses.
void World::RequireRoomOnHost(const Tenant& going) {
  Require(going.evicted || FitsOnHost(going), "swapped out into no room");
}

bool World::FitsOnHost(const Tenant& going) const {
  int64_t there = HostBytes(going);
  for (const std::pair<const SessionId, Tenant>& entry : tenants_) {
    if (!entry.second.resident) there += HostBytes(entry.second);
  }
  return there <= state_.limits.swap_bytes;
}

void World::CheckFifo() {
  for (const std::pair<const LaneId, WorldLane>& entry : lanes_) {
    const WorldLane& lane = entry.second;
    if (lane.holder == 0 || state_.lanes.at(entry.first).reserved != 0) continue;
    const Tenant& holder = tenants_.at(lane.holder);
    const bool runs = holder.runnable || holder.inside;
    if (!runs || holder.blocked || holder.ending || holder.revoked || !holder.resident ||
        holder.swapping != 0) {
      continue;
    }
    for (const std::pair<const SessionId, Tenant>& one : tenants_) {
      const Tenant& tenant = one.second;
      if (tenant.id >= holder.id || tenant.lane != entry.first || tenant.gang != 0) continue;
      Require(!CanRun(tenant), "runs on before an earlier one that could");
    }
  }
}

// A session that waits for its user's quota alone lets others pass.
void World::RequireFirstToComeIn(const Tenant& admitted) {
  if (options_.policy != "fifo") return;
  for (const std::pair<const SessionId, Tenant>& entry : tenants_) {
    const Tenant& tenant = entry.second;
    if (tenant.id >= admitted.id || tenant.admitted || tenant.device != admitted.device) continue;
    const std::map<uint32_t, User>::const_iterator user = state_.users.find(tenant.user);
    const bool quota = user != state_.users.end() &&
                       (user->second.memory_bytes != 0 || user->second.sessions_max != 0);
    Require(quota, "admitted before an earlier one");
  }
}

void World::AllLeave() {
  while (!tenants_.empty()) {
    Tenant* const tenant = Any();
    const SessionId id = tenant->id;
    if (tenant->lane != 0 && GetLane(tenant->lane)->holder == id) GetLane(tenant->lane)->holder = 0;
    tenants_.erase(id);
    Tell(SessionLeft{id});
  }
  ComeToRest();
  RequireNothingIsLeft();
}

void World::RequireNothingIsLeft() {
  Require(state_.sessions.empty() && state_.gangs.empty() && state_.ready_gangs.empty() &&
              state_.assembling == 0,
          "a session is left");
  Require(state_.lanes.empty() && lanes_.empty(), "a lane is left");
  Require(state_.queued == 0 && state_.admitted == 0 && state_.ending == 0, "a place is taken");
  Require(state_.swapped_bytes == 0, "swap space is left taken");
  for (const std::pair<const uint32_t, Device>& entry : state_.devices) {
    const Device& device = entry.second;
    Require(device.charged_bytes == 0 && device.lanes_bytes == 0 && device.coming_bytes == 0,
            "memory is left taken");
    Require(device.swapping == 0 && device.lanes.empty(), "a swap or a lane is left on a device");
    Require(device.claims.empty() && device.oldest_claims.empty() && device.needs.empty() &&
                device.lru.empty() && device.youngest.empty(),
            "an index is left with somebody");
  }
  for (const std::pair<const uint32_t, User>& entry : state_.users) {
    Require(entry.second.admitted == 0 && entry.second.active == 0, "a user's session is left");
    for (const std::pair<const uint32_t, int64_t>& used : entry.second.used_bytes)
      Require(used.second == 0, "a user's memory is left");
  }
}

}  // namespace scheduler
