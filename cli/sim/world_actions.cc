// World: what the scheduler's actions bring about.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/find.h"
#include "cli/sim/world.h"

namespace sim {

void World::Perform(const scheduler::Action& action) {
  std::visit([this](const auto& known) { Do(known); }, action);
}

void World::UseMemory(int64_t persistent_bytes, int64_t lane_bytes) {
  persistent_bytes_ += persistent_bytes;
  lane_bytes_ += lane_bytes;
  recorder_.Memory(now_us_, persistent_bytes_, lane_bytes_);
  if (persistent_bytes_ + lane_bytes_ <= outcome_->capacity_bytes || !broken_.empty()) return;
  broken_ =
      absl::StrCat("at ", static_cast<double>(now_us_) / 1e6, " s the jobs' ",
                   persistent_bytes_ >> 20, " MiB and the lanes' ", lane_bytes_ >> 20,
                   " MiB are more than the device's ", outcome_->capacity_bytes >> 20, " MiB");
}

void World::Transfer(Kind kind, scheduler::SessionId id, int64_t bytes) {
  int64_t& free_us = link_free_us_[kind == Kind::kSwappedIn];
  const double bytes_per_us = device_plan_.swap_gib_per_s * (1 << 30) / 1e6;
  free_us = std::max(free_us, now_us_) +
            static_cast<int64_t>(std::ceil(static_cast<double>(bytes) / bytes_per_us));
  recorder_.Begin(id - 1, 0, Doing::kSwapping, now_us_, Of(id).done);
  After(free_us - now_us_, kind, id, 0);
  ++JobOf(id).swaps;
  ++outcome_->swaps;
}

void World::ResizeTo(scheduler::LaneId id, int64_t bytes) {
  const int64_t more = bytes - lanes_[id].bytes;
  lanes_[id].bytes = bytes;
  if (more != 0) UseMemory(0, more);
  if (bytes == 0) lanes_.erase(id);
  outcome_->lanes_max = std::max(outcome_->lanes_max, static_cast<int64_t>(lanes_.size()));
}

void World::Do(const scheduler::Admit& action) {
  Session& session = Of(action.session);
  session.admitted = true;
  session.waits.clear();
  JobOf(action.session).admitted_us = now_us_;
  outcome_->admitted_max = std::max(outcome_->admitted_max, ++admitted_);
  if (PersistentBytes(action.session) > 0) {
    untold_.push_back(scheduler::MemoryNeeded{action.session, PersistentBytes(action.session)});
  } else {
    AskForLane(action.session);
  }
}

void World::Do(const scheduler::Queue& action) { Of(action.session).waits = action.reason; }
void World::Do(const scheduler::Wait& action) { Of(action.session).waits = action.reason; }

void World::Do(const scheduler::Reject& action) {
  JobOf(action.session).reason = action.reason;
  Of(action.session).ended = true;
  ++ended_;
}

void World::Do(const scheduler::RefuseMemory& action) {
  JobOf(action.session).reason = action.reason;
  End(action.session, false);
}

void World::Do(const scheduler::GrantMemory& action) {
  Of(action.session).waits.clear();
  Of(action.session).resident = true;
  UseMemory(action.bytes, 0);
  AskForLane(action.session);
}

void World::Do(const scheduler::AssignLane& action) {
  Session& session = Of(action.session);
  ResizeTo(action.lane, action.bytes);
  if (session.granted && session.lane != action.lane) {
    session.granted = session.revoked = false;
    ++session.epoch;
  }
  session.lane = action.lane;
  if (!action.answer || session.assigned) return;
  session.assigned = true;
  session.waits.clear();
  session.idle = !HasWork(session, action.session);
  if (!session.idle) untold_.push_back(scheduler::Runnable{action.session});
}

void World::Do(const scheduler::ResizeLane& action) {
  const bool shrinks = action.bytes < lanes_[action.lane].bytes;
  ResizeTo(action.lane, action.bytes);
  if (shrinks) untold_.push_back(scheduler::LaneShrunk{action.lane, action.bytes});
}

void World::Do(const scheduler::Grant& action) {
  Session& session = Of(action.session);
  ++outcome_->grants;
  if (session.ended) {
    untold_.push_back(scheduler::Switched{action.lane, action.session, 0});
    return;
  }
  if (session.granted) {  // it may have been handed the lane already
    session.revoked = false;
    return;
  }
  session.granted = true;
  session.revoked = false;
  session.lane = action.lane;
  lanes_[action.lane].successors.clear();
  ++JobOf(action.session).turns;
  if (HasWork(session, action.session)) PrepareStart(action.session);
}

void World::Do(const scheduler::Revoke& action) {
  Session& session = Of(action.session);
  if (session.ended || !session.granted) return;
  ++outcome_->revokes;
  session.revoked = true;
  const SharedDevice::Active* const active = device_.Find(action.session);
  if (active == nullptr) {  // between iterations, or it hasn't begun
    HandOver(action.session);
    return;
  }
  const double boundary = std::ceil(active->done);
  if (boundary > active->done) {
    device_.SetTarget(action.session, boundary);
  } else {  // exactly at one
    StopComputing(action.session);
    HandOver(action.session);
  }
}

void World::Do(const scheduler::Successors& action) {
  if (Lane* const lane = base::FindOrNull(lanes_, action.lane)) lane->successors = action.sessions;
}

void World::Do(const scheduler::SwapOut& action) {
  Transfer(Kind::kSwappedOut, action.session, PersistentBytes(action.session));
}

void World::Do(const scheduler::SwapIn& action) {
  UseMemory(PersistentBytes(action.session), 0);
  Transfer(Kind::kSwappedIn, action.session, PersistentBytes(action.session));
}

void World::Do(const scheduler::Report& action) {}  // a job's iteration is as long as it is

}  // namespace sim
