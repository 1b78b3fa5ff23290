#include "cli/sim/world.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sim {
namespace {

using scheduler::SessionId;

constexpr double kMib = 1 << 20;

int64_t Bytes(double mib) { return static_cast<int64_t>(mib * kMib); }

uint32_t UserNumber(const std::string& user, std::vector<std::string>* users) {
  const std::vector<std::string>::iterator found = std::find(users->begin(), users->end(), user);
  if (found != users->end()) return static_cast<uint32_t>(found - users->begin());
  users->push_back(user);
  return static_cast<uint32_t>(users->size() - 1);
}

}  // namespace

World::World(const Experiment& experiment, Outcome* outcome)
    : device_plan_(experiment.device),
      knowledge_(experiment.knowledge),
      outcome_(outcome),
      recorder_(experiment.record, outcome),
      random_(experiment.seed) {
  for (const Job& job : experiment.jobs) {
    JobOutcome entry;
    entry.job = job;
    entry.arrival_us = std::llround(job.arrival_s * 1e6);
    outcome_->jobs.push_back(std::move(entry));
  }
  std::stable_sort(
      outcome_->jobs.begin(), outcome_->jobs.end(),
      [](const JobOutcome& a, const JobOutcome& b) { return a.arrival_us < b.arrival_us; });
  sessions_.resize(outcome_->jobs.size());
  outcome_->capacity_bytes = experiment.device.memory_mib << 20;
  if (!outcome_->jobs.empty()) outcome_->begin_us = outcome_->jobs.front().arrival_us;
}

int64_t World::PersistentBytes(SessionId id) const { return Bytes(Plan(id).persistent_mib); }
int64_t World::EphemeralBytes(SessionId id) const { return Bytes(Plan(id).ephemeral_mib); }

scheduler::Estimate World::EstimateOf(SessionId id) const {
  const Job& job = Plan(id);
  if (knowledge_ == Knowledge::kLearned) return history_.Of(job.Key());
  if (knowledge_ != Knowledge::kExact) return {};
  return {PersistentBytes(id), EphemeralBytes(id), std::llround(job.iteration_ms * 1e3),
          std::llround(job.AloneSeconds() * 1e6)};
}

// --- time ----------------------------------------------------------------------------------------

int64_t World::NextUs() const {
  if (!untold_.empty()) return now_us_;
  int64_t next = device_.NextUs();
  if (!later_.empty()) next = std::min(next, later_.top().time_us);
  if (next_arrival_ < sessions_.size()) {
    next = std::min(next, outcome_->jobs[next_arrival_].arrival_us);
  }
  return next;
}

void World::Advance(int64_t now_us) {
  assert(now_us >= now_us_);
  now_us_ = now_us;
  device_.Advance(now_us);
  for (SessionId id = device_.Reached(); id != 0; id = device_.Reached()) AtBoundary(id);
  while (!later_.empty() && later_.top().time_us <= now_us) {
    const Later later = later_.top();
    later_.pop();
    Happen(later);
  }
  while (next_arrival_ < sessions_.size() && outcome_->jobs[next_arrival_].arrival_us <= now_us) {
    Arrive(++next_arrival_);
  }
}

void World::After(int64_t delay_us, Kind kind, SessionId id, uint32_t epoch) {
  later_.push({now_us_ + delay_us, order_++, kind, id, epoch});
}

void World::Happen(const Later& later) {
  Session& session = Of(later.session);
  if (session.ended) return;
  switch (later.kind) {
    case Kind::kStart:
      if (later.epoch == session.epoch) Start(later.session);
      return;
    case Kind::kSwappedOut:
    case Kind::kSwappedIn: {
      const bool out = later.kind == Kind::kSwappedOut;
      session.swapped = out;
      recorder_.End(later.session - 1, now_us_, session.done);
      if (out) UseMemory(-PersistentBytes(later.session), 0);
      untold_.push_back(scheduler::Swapped{later.session, out, true, {}});
      return;
    }
    case Kind::kRequest:
      session.requests.push_back(now_us_);
      AskAgain(later.session);
      if (session.assigned && session.idle) {
        session.idle = false;
        untold_.push_back(scheduler::Runnable{later.session});
        if (session.granted) PrepareStart(later.session);
      }
      return;
  }
}

bool World::TakeEvent(scheduler::Event* event) {
  if (untold_.empty()) return false;
  *event = std::move(untold_.front());
  untold_.pop_front();
  return true;
}

// --- programs ------------------------------------------------------------------------------------

void World::Arrive(SessionId id) {
  const Job& job = Plan(id);
  scheduler::SessionArrived arrived;
  arrived.session = id;
  arrived.job = id;
  arrived.user = UserNumber(job.user, &users_);
  arrived.priority = static_cast<uint32_t>(job.priority);
  arrived.weight = job.weight;
  arrived.deadline_us = std::llround(job.deadline_ms * 1e3);
  const bool declares = knowledge_ == Knowledge::kDeclared || knowledge_ == Knowledge::kLearned;
  arrived.iterations = declares ? job.declared_iterations : 0;
  arrived.estimate = EstimateOf(id);
  untold_.push_back(arrived);
  if (job.request_ms > 0) AskAgain(id);
}

void World::AskAgain(SessionId id) {
  if (Of(id).asked == Plan(id).iterations) return;
  ++Of(id).asked;
  After(std::llround(random_.Exponential(Plan(id).request_ms * 1e3)), Kind::kRequest, id, 0);
}

void World::AskForLane(SessionId id) {
  untold_.push_back(scheduler::LaneNeeded{id, EphemeralBytes(id)});
}

bool World::HasWork(const Session& session, SessionId id) const {
  return Plan(id).request_ms <= 0 || !session.requests.empty();
}

// It has been given the lane; what a switch costs comes first.
void World::PrepareStart(SessionId id) {
  After(device_plan_.switch_us, Kind::kStart, id, ++Of(id).epoch);
}

void World::Start(SessionId id) {
  Session& session = Of(id);
  const Job& job = Plan(id);
  assert(session.granted && !session.swapped && HasWork(session, id));
  JobOutcome& outcome = JobOf(id);
  if (outcome.first_run_us < 0) outcome.first_run_us = now_us_;
  session.reported_us = now_us_;
  SharedDevice::Active active;
  active.id = id;
  active.load = {job.busy_percent / 100, job.interference_percent / 100};
  active.iteration_us = job.iteration_ms * 1e3;
  active.done = session.done;
  active.target = job.request_ms > 0 ? session.done + 1 : static_cast<double>(job.iterations);
  device_.Start(active);
  recorder_.Begin(id - 1, session.lane, Doing::kIterating, now_us_, session.done);
}

void World::StopComputing(SessionId id) {
  Session& session = Of(id);
  session.done = device_.Stop(id);
  recorder_.End(id - 1, now_us_, session.done);
  const int64_t ended = std::llround(session.done);
  untold_.push_back(
      scheduler::Progress{id, ended - session.reported_iterations, now_us_ - session.reported_us});
  session.reported_iterations = ended;
}

void World::ReportProgress() {
  for (const SharedDevice::Active& active : device_.active()) {
    Session& session = Of(active.id);
    const int64_t ended = static_cast<int64_t>(active.done);
    if (ended == session.reported_iterations) continue;
    // Up to its last boundary: the present iteration is a matter of the next report.
    const double present_us =
        (active.done - std::floor(active.done)) * active.iteration_us / active.speed.rate;
    const int64_t boundary_us =
        std::max(session.reported_us, now_us_ - static_cast<int64_t>(present_us));
    untold_.push_back(scheduler::Progress{active.id, ended - session.reported_iterations,
                                          boundary_us - session.reported_us});
    session.reported_iterations = ended;
    session.reported_us = boundary_us;
  }
}

// It computes, and what it was to compute is done.
void World::AtBoundary(SessionId id) {
  Session& session = Of(id);
  StopComputing(id);
  if (!session.requests.empty()) {
    JobOf(id).latency_us.push_back(now_us_ - session.requests.front());
    session.requests.pop_front();
  }
  if (std::llround(session.done) >= Plan(id).iterations) {
    End(id, true);
  } else if (session.revoked) {
    HandOver(id);
    if (!HasWork(session, id)) {
      session.idle = true;
      untold_.push_back(scheduler::Idle{id, true});
    }
  } else if (HasWork(session, id)) {
    Start(id);
  } else {
    session.idle = true;
    untold_.push_back(scheduler::Idle{id, true});
  }
}

// The worker's part: the lane goes to the first successor that has work, and lanewayd hears of it.
void World::HandOver(SessionId id) {
  Session& session = Of(id);
  assert(session.granted && device_.Find(id) == nullptr);
  session.granted = session.revoked = false;
  ++session.epoch;
  Lane& lane = lanes_[session.lane];
  SessionId next = 0;
  for (const SessionId candidate : std::exchange(lane.successors, {})) {
    const Session& other = Of(candidate);
    if (candidate == id || other.ended || other.granted || !other.assigned || other.swapped ||
        other.lane != session.lane || !HasWork(other, candidate)) {
      continue;
    }
    next = candidate;
    break;
  }
  untold_.push_back(scheduler::Switched{session.lane, id, next});
  if (next == 0) return;
  Session& follower = Of(next);
  follower.granted = true;
  ++JobOf(next).turns;
  ++outcome_->switches;
  PrepareStart(next);
}

void World::End(SessionId id, bool finished) {
  Session& session = Of(id);
  if (session.granted) HandOver(id);
  session.ended = true;
  ++ended_;
  if (session.admitted) --admitted_;
  if (finished) {
    JobOf(id).end_us = now_us_;
    JobOf(id).reason.clear();
    outcome_->end_us = std::max(outcome_->end_us, now_us_);
    history_.Learn(Plan(id).Key(), {PersistentBytes(id), EphemeralBytes(id),
                                    std::llround(Plan(id).iteration_ms * 1e3),
                                    std::llround(Plan(id).AloneSeconds() * 1e6)});
  }
  if (session.resident && !session.swapped) UseMemory(-PersistentBytes(id), 0);
  session.resident = false;
  untold_.push_back(scheduler::SessionEnding{id});
  untold_.push_back(scheduler::SessionLeft{id});
}

std::string World::Stalled() const {
  for (size_t i = 0; i < sessions_.size(); ++i) {
    if (sessions_[i].ended) continue;
    return absl::StrCat("nothing happens any more, but ", outcome_->jobs[i].job.name, " has done ",
                        sessions_[i].done, " of ", outcome_->jobs[i].job.iterations, " iterations",
                        sessions_[i].waits.empty() ? "" : "; it waits: ", sessions_[i].waits);
  }
  return {};
}

void World::Finish() {
  outcome_->busy_us = device_.busy_us();
  outcome_->computing_us = device_.computing_us();
}

}  // namespace sim
