#include "tests/scheduler/world.h"

#include <algorithm>
#include <stdexcept>

#include "scheduler/why.h"

namespace scheduler {
namespace {

constexpr int64_t kOverhead = 30;
constexpr int64_t kReserve = 20;

}  // namespace

void Require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

World::World(const Options& options, uint64_t seed)
    : options_(options), random_(seed), state_(options.policy) {
  state_.limits.sessions_max = 8 + Random(8);
  state_.limits.slice_us = 5'000;
  state_.limits.swap_slice_us = 50'000;
  state_.limits.starvation_us = 500'000;
  state_.limits.iteration_max_us = 100'000;
  state_.limits.lanes_max = 6;
  state_.limits.standstill_us = 5'000;
  if (Random(4) == 0) state_.limits.swap_bytes = Random(2) == 0 ? 800 : 50;
  for (int device = 0; device < options.devices; ++device) {
    capacity_.push_back(options.capacity);
    Tell(CapacityChanged{static_cast<uint32_t>(device), options.capacity, kOverhead, kReserve});
  }
  if (!options.quotas || Random(3) != 0) return;
  Tell(UserChanged{0, 300, Random(2) == 0 ? 700 : 0, Random(2) == 0 ? 5u : 0u});
}

Tenant* World::Get(SessionId id) {
  const std::map<SessionId, Tenant>::iterator found = tenants_.find(id);
  Require(found != tenants_.end(), "an action about a session that is not there");
  return &found->second;
}

WorldLane* World::GetLane(LaneId id) {
  const std::map<LaneId, WorldLane>::iterator found = lanes_.find(id);
  Require(found != lanes_.end(), "an action about a lane that is not there");
  return &found->second;
}

Tenant* World::Any() {
  if (tenants_.empty()) return nullptr;
  std::map<SessionId, Tenant>::iterator at = tenants_.begin();
  std::advance(at, Random(tenants_.size()));
  return &at->second;
}

void World::Tell(const Event& event) {
  ++events_;
  for (const Action& action : OnEvent(&state_, event, now_us_)) Perform(action);
  Check();
}

std::string World::Describe() const {
  std::string text = "assembling " + std::to_string(state_.assembling);
  for (const std::pair<const uint32_t, Device>& entry : state_.devices) {
    text += "\n  device " + std::to_string(entry.first) + (entry.second.lost ? " lost" : "") +
            " free " + std::to_string(entry.second.free_bytes()) + " coming " +
            std::to_string(entry.second.coming_bytes);
  }
  for (const std::pair<const SessionId, Tenant>& entry : tenants_) {
    const Tenant& tenant = entry.second;
    const Session* const session = state_.Find(entry.first);
    text += "\n  " + std::to_string(entry.first) + " device " + std::to_string(tenant.device) +
            " lane " + std::to_string(tenant.lane) + (tenant.admitted ? "" : " queued") +
            (tenant.ending ? " ending" : "") + (tenant.granted ? " granted" : "") +
            (tenant.revoked ? " revoked" : "") + (tenant.inside ? " inside" : "") +
            (tenant.runnable ? " runnable" : "") + (tenant.blocked ? " blocked" : "") +
            (tenant.resident ? "" : " swapped") + (tenant.swapping != 0 ? " swapping" : "") +
            (tenant.gang != 0 ? " gang" : "") + " persistent " +
            std::to_string(tenant.persistent_bytes) + " ephemeral " +
            std::to_string(tenant.ephemeral_bytes) + ": " +
            Sentence(Why(state_, entry.first, now_us_)) +
            (session != nullptr && session->eligible() ? " (eligible)" : "");
  }
  for (const std::pair<const LaneId, WorldLane>& entry : lanes_) {
    text += "\n  lane " + std::to_string(entry.first) + " device " +
            std::to_string(entry.second.device) + " bytes " + std::to_string(entry.second.bytes) +
            (state_.lanes.count(entry.first) != 0
                 ? (state_.lanes.at(entry.first).closing ? " closing" : "") +
                       std::string(" scheduler says ") +
                       std::to_string(state_.lanes.at(entry.first).bytes)
                 : " unknown") +
            " holder " + std::to_string(entry.second.holder) + " reserved " +
            std::to_string(
                state_.lanes.count(entry.first) != 0 ? state_.lanes.at(entry.first).reserved : 0) +
            " shrinking to " + std::to_string(entry.second.shrinking_to);
  }
  return text;
}

// --- what programs and workers do ----------------------------------------------------------------

void World::Step() {
  now_us_ += Random(2'000);
  if (NextTimerUs(state_) <= now_us_) Tell(Timer{});
  const uint64_t what = Random(100);
  if (tenants_.empty() || (what < 4 && static_cast<int>(tenants_.size()) < options_.tenants_max)) {
    Arrive();
    return;
  }
  Tenant* const tenant = Any();
  if (what < 7) {
    Leave(tenant);
  } else if (what < 50) {
    Work(tenant);
  } else if (what < 65) {
    Ask(tenant);
  } else if (what < 95) {
    FinishSomething();
  } else {
    Disturb(tenant);
  }
}

void World::Arrive() {
  const int ranks = options_.gangs && Random(8) == 0 ? 2 : 1;
  const uint32_t user = Random(options_.users);
  const uint64_t job = next_id_;
  const int64_t limit = Random(5) == 0 ? 400 : 0;
  for (int rank = 0; rank < ranks; ++rank) {
    SessionArrived about = {next_id_++, job, user};
    about.device = (Random(options_.devices) + rank) % options_.devices;
    about.priority = Random(3);
    about.weight = 50 + Random(3) * 50;
    about.deadline_us = Random(3) == 0 ? 1 + Random(50'000) : 0;
    about.iterations = Random(2) == 0 ? Random(1000) : 0;
    about.limit_bytes = limit;
    about.gang_size = ranks;
    if (Random(2) == 0) {
      about.estimate = {static_cast<int64_t>(Random(400)), static_cast<int64_t>(Random(300)), 1'000,
                        static_cast<int64_t>(Random(1'000'000))};
    }
    Tenant tenant = {about.session, user, about.device, ranks > 1 ? job : 0};
    tenant.ephemeral_bytes = 0;
    tenants_[about.session] = tenant;
    Tell(about);
  }
}

void World::Leave(Tenant* tenant) {
  const SessionId id = tenant->id;
  if (!tenant->ending && tenant->admitted && Random(2) == 0) {
    tenant->ending = true;
    Tell(SessionEnding{id});
    return;
  }
  if (WorldLane* const lane = tenant->lane != 0 ? GetLane(tenant->lane) : nullptr) {
    if (lane->holder == id) lane->holder = 0;
  }
  tenants_.erase(id);
  Tell(SessionLeft{id});
}

void World::Work(Tenant* tenant) {
  if (!tenant->admitted || tenant->ending) return;
  if (!tenant->runnable) {
    tenant->runnable = true;
    if (tenant->granted && tenant->swapping == 0) tenant->inside = tenant->ephemeral_bytes > 0;
    Tell(Runnable{tenant->id});
  } else if (tenant->granted && tenant->resident && tenant->swapping == 0 && !tenant->blocked) {
    Boundary(tenant);
  } else if (!tenant->granted && !tenant->blocked && Random(4) == 0) {
    tenant->runnable = false;
    Tell(Idle{tenant->id, true});
  }
}

void World::Boundary(Tenant* tenant) {
  const SessionId id = tenant->id;
  Tell(Progress{id, static_cast<int64_t>(Random(3)), static_cast<int64_t>(Random(3'000))});
  if (!tenant->granted) return;
  if (Random(6) == 0) {
    tenant->runnable = false;
    const bool at_boundary = !tenant->inside || Random(3) != 0;
    if (at_boundary) tenant->inside = false;
    Tell(Idle{id, at_boundary});
  }
}

void World::Ask(Tenant* tenant) {
  if (!tenant->admitted || tenant->ending || tenant->blocked) return;
  // It asks before it hears that it goes, or on its way back.
  const bool away = !tenant->resident || tenant->swapping != 0;
  if (away && Random(4) != 0) return;
  const uint64_t what = Random(4);
  if (what == 0 && tenant->persistent_bytes > 0) {
    if (away) return;
    const int64_t bytes = 1 + Random(tenant->persistent_bytes);
    tenant->persistent_bytes -= bytes;
    Tell(MemoryFreed{tenant->id, bytes});
  } else if (what < 3) {
    tenant->blocked = true;
    tenant->asked_bytes = 1 + Random(Random(3) == 0 ? 500 : 100);
    Tell(MemoryNeeded{tenant->id, tenant->asked_bytes});
  } else {
    tenant->blocked = true;
    tenant->asked_bytes = 0;
    tenant->asked_lane_bytes = static_cast<int64_t>(Random(Random(3) == 0 ? 500 : 150));
    Tell(LaneNeeded{tenant->id, tenant->asked_lane_bytes});
  }
}

void World::ComeToRest() {
  constexpr int kRoundsMax = 1'000;
  for (int round = 0; FinishSomething(); ++round) {
    Require(round < kRoundsMax, "what was begun at one instant goes round for ever");
  }
}

bool World::FinishSomething() {
  struct Pending {
    SessionId session = 0;
    LaneId lane = 0;
    bool hand_over = false;
  };
  std::vector<Pending> pending;
  for (const std::pair<const LaneId, WorldLane>& entry : lanes_) {
    if (entry.second.shrinking_to >= 0) pending.push_back({0, entry.first, false});
    if (entry.second.holder == 0) continue;
    const Tenant& holder = tenants_.at(entry.second.holder);
    // A blocked thread inside an iteration can't come to its boundary.
    const bool stuck = holder.lane_saved || !holder.resident || (holder.blocked && holder.inside);
    if (holder.revoked && !stuck) pending.push_back({0, entry.first, true});
  }
  for (const std::pair<const SessionId, Tenant>& entry : tenants_) {
    if (entry.second.swapping != 0) pending.push_back({entry.first});
  }
  if (pending.empty()) return false;
  const Pending& one = pending[Random(pending.size())];
  if (one.session != 0) {
    Tenant* const tenant = Get(one.session);
    const bool out = tenant->swapping < 0;
    const bool ok = Random(10) != 0 && (!out || FitsOnHost(*tenant));
    tenant->swapping = 0;
    tenant->resident = ok != out;
    if (!ok && out) {
      tenant->lane_saved = false;
      if (tenant->granted && tenant->runnable) tenant->inside = tenant->ephemeral_bytes > 0;
    }
    if (ok && out && tenant->lane != 0 && GetLane(tenant->lane)->holder == tenant->id) {
      GetLane(tenant->lane)->holder = 0;
      tenant->granted = tenant->inside = tenant->revoked = false;
    }
    if (ok && out) tenant->lane = 0;
    if (!ok && !out) {
      if (GetLane(tenant->lane)->holder == tenant->id) GetLane(tenant->lane)->holder = 0;
      tenant->granted = tenant->inside = tenant->revoked = false;
      tenant->lane = 0;
    }
    Tell(Swapped{tenant->id, out, ok, ok ? "" : "the disk is full"});
  } else if (!one.hand_over) {
    WorldLane* const lane = GetLane(one.lane);
    lane->bytes = lane->shrinking_to;
    lane->shrinking_to = -1;
    const int64_t bytes = lane->bytes;
    bool used = false;
    for (const std::pair<const SessionId, Tenant>& entry : tenants_)
      used |= entry.second.lane == one.lane;
    if (!used && bytes == 0) lanes_.erase(one.lane);
    Tell(LaneShrunk{one.lane, bytes});
  } else {
    HandOver(one.lane);
  }
  return true;
}

void World::Disturb(Tenant* tenant) {
  const uint64_t what = Random(11);
  if (what < 4) {
    tenant->paused = !tenant->paused;
    tenant->evicted = tenant->paused && Random(2) == 0;
    if (tenant->paused) {
      Tell(Paused{tenant->id, tenant->evicted});
    } else {
      Tell(Resumed{tenant->id});
    }
  } else if (what < 6) {
    Tell(LimitChanged{tenant->id, 200 + static_cast<int64_t>(Random(600))});
  } else if (what == 6 && tenants_.size() > 3) {
    const uint32_t device = Random(capacity_.size());
    for (std::pair<const LaneId, WorldLane>& entry : lanes_) {
      if (entry.second.device != device || entry.second.holder == 0) continue;
      Tenant* const holder = Get(entry.second.holder);
      if (!holder->resident || holder->swapping != 0) continue;
      entry.second.holder = 0;
      holder->granted = holder->inside = holder->revoked = false;
    }
    Tell(DeviceLost{device});
    Tell(CapacityChanged{device, capacity_[device], kOverhead, kReserve});
  } else if (what == 7) {  // about nobody
    Tell(Dismissed{tenant->id});
    Tell(Dismissed{99'999});
    Tell(Switched{99'999, 1, 2});
    Tell(LaneShrunk{99'999, 0});
    Tell(Runnable{~SessionId{0}});
  } else if (what == 8) {
    Move(tenant);
  } else {
    Tell(Timer{});
  }
}

// --- what must hold ------------------------------------------------------------------------------

bool World::CanRun(const Tenant& tenant) const {
  return tenant.admitted && !tenant.ending && tenant.runnable && !tenant.paused &&
         !tenant.blocked && tenant.resident && tenant.swapping == 0 && tenant.lane != 0 &&
         !tenant.granted;
}

void World::Check() {
  for (const std::pair<const SessionId, Tenant>& entry : tenants_) {
    const Tenant& tenant = entry.second;
    const Session* const session = state_.Find(entry.first);
    Require(session != nullptr, "the scheduler forgot a session");
    Require(session->granted == tenant.granted, "whether it is granted");
    Require(session->revoked == tenant.revoked, "whether it is revoked");
    Require(session->inside == tenant.inside, "whether it is inside an iteration");
    Require(session->lane == tenant.lane, "its lane");
    Require(session->persistent_bytes == tenant.persistent_bytes, "its persistent memory");
  }
  for (uint32_t device = 0; device < capacity_.size(); ++device) CheckDevice(device);
  if (options_.gangs) CheckGangs();
  CheckQuotas();
  CheckSwapSpace();
  if (options_.policy == "fifo") CheckFifo();
  Require(state_.admitted <= state_.limits.sessions_max, "more sessions than places");
}

void World::CheckDevice(uint32_t device) {
  int64_t used = kOverhead + kReserve;
  bool pending = state_.assembling != 0;
  bool progress = false;
  bool could = false;
  bool moves = false;
  for (const std::pair<const LaneId, WorldLane>& entry : lanes_) {
    const WorldLane& lane = entry.second;
    if (lane.device != device) continue;
    used += lane.bytes;
    pending |= lane.shrinking_to >= 0;
    if (lane.holder == 0) continue;
    const Tenant& holder = tenants_.at(lane.holder);
    Require(holder.granted && holder.lane == entry.first, "a holder without its lane");
    progress |= (holder.runnable || holder.inside) && !holder.blocked && !holder.ending;
    pending |= holder.revoked && !(holder.blocked && holder.inside) && !holder.ending;
  }
  for (const std::pair<const SessionId, Tenant>& entry : tenants_) {
    const Tenant& tenant = entry.second;
    if (tenant.device != device) continue;
    if (tenant.resident || tenant.swapping != 0) used += tenant.persistent_bytes;
    pending |= tenant.swapping != 0;
    moves |= tenant.swapping != 0;
    if (tenant.gang != 0 || !CanRun(tenant)) continue;
    const WorldLane& lane = lanes_.at(tenant.lane);
    const Tenant* const holder = lane.holder == 0 ? nullptr : &tenants_.at(lane.holder);
    could |= lane.shrinking_to < 0 && (holder == nullptr || (!holder->inside && !holder->ending));
  }
  if (progress || moves) {
    still_since_us_.erase(device);
  } else {
    still_since_us_.insert({device, now_us_});
  }
  Require(used <= capacity_[device], "the safety condition");
  Require(!could || progress || pending || state_.devices.at(device).lost,
          "a device rests while somebody could run");
}

void World::CheckGangs() {
  for (const std::pair<const SessionId, Tenant>& entry : tenants_) {
    const Tenant& tenant = entry.second;
    if (tenant.gang == 0 || !tenant.granted) continue;
    // Granted together: whoever was granted at that moment, was with all its mates.
    const Session& session = *state_.Find(entry.first);
    const std::map<uint64_t, Gang>::const_iterator gang = state_.gangs.find(session.about.job);
    for (const SessionId mate : gang->second.members) {
      const Session& other = *state_.Find(mate);
      if (!other.granted || session.place.lane_saved || other.place.lane_saved) continue;
      Require(other.lane != session.lane || other.id == session.id, "two ranks in one lane");
    }
  }
}

}  // namespace scheduler
