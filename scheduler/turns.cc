// Turns: who holds which lane, who is next, who gives way.
#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "scheduler/core.h"

namespace scheduler {
namespace {

constexpr size_t kSuccessorsMax = 4;

void Activate(Core* core, Session* session) {
  User* const user = core->UserOf(*session);
  if (user->active++ == 0)
    user->virtual_us = std::max(user->virtual_us, core->state->user_floor_us);
}

bool IsOpen(const Lane& lane) {
  return lane.holder == nullptr && !lane.closing && lane.shrinking_to < 0;
}

// Holds its lane for nothing: idle at a boundary, or blocked without live ephemeral memory.
bool Yields(const Session& holder) {
  return !holder.progressing() && !holder.inside && holder.phase == Phase::kAdmitted &&
         holder.place.residence == Residence::kDevice;
}

void Publish(Core* core, Lane* lane) {
  std::array<SessionId, kSuccessorsMax> next;
  size_t count = 0;
  if (lane->handing_on) {
    if (const Session* const head = Head(core, *lane)) next[count++] = head->id;
    for (const Key& key : lane->waiting) {
      if (count == 0 || count == kSuccessorsMax) break;
      if (key.session != next[0]) next[count++] = key.session;
    }
  }
  SessionId* const end = next.data() + count;
  const bool same = std::equal(lane->published.begin(), lane->published.end(), next.data(), end);
  if (same && lane->told) return;
  lane->told = true;
  lane->published.assign(next.data(), end);
  core->actions.push_back(Successors{lane->id, lane->published});
}

// A look at a device: its lanes, and what could change.
struct View {
  unsigned width = 1;
  unsigned occupied = 0;    // lanes that run, or will when their holder hands them on
  unsigned leaving = 0;     // of these, those that become free
  Lane* best = nullptr;     // a lane that could run, and does not, with the first head
  Session* head = nullptr;  // its head
  Lane* oldest = nullptr;   // of those that could run: where somebody has waited for longest
  Lane* worst = nullptr;    // the running lane whose holder is last
};

bool IsBefore(const Core& core, const Session& one, const Session& other) {
  return core.state->policy->Before(*core.state, one, other);
}

// Of two heads of lanes: whom a turn was promised is first, in whatever lane.
bool IsFirst(const Core& core, const Session& one, const Session& other) {
  if (Starves(core, one) != Starves(core, other)) return Starves(core, one);
  if (Starves(core, one)) return one.waiting_us < other.waiting_us;
  return IsBefore(core, one, other);
}

View Look(Core* core, Device* device) {
  View view;
  unsigned ranks = 0;  // of a gang: they run together, however few lanes the policy wants
  unsigned running = 0;
  for (Lane* const lane : device->lanes) {
    Session* const holder = lane->holder;
    running += holder != nullptr && holder->progressing();
    ranks += lane->reserved != 0 || (holder != nullptr && holder->gang());
    if (lane->reserved != 0 && holder == nullptr) {
      ++view.occupied;
      continue;
    }
    const bool hands_on = holder != nullptr && lane->handing_on && Yields(*holder);
    if (hands_on || (holder != nullptr && holder->progressing())) {
      ++view.occupied;
      view.leaving += holder->revoked && !lane->handing_on;
      if (holder->revoked) continue;
      if (view.worst == nullptr || IsBefore(*core, *view.worst->holder, *holder)) {
        view.worst = lane;
      }
      continue;
    }
    const bool can_run = IsOpen(*lane) || (holder != nullptr && Yields(*holder) &&
                                           !holder->revoked && !lane->closing);
    if (!can_run) continue;
    Session* const head = Head(core, *lane);
    if (head == nullptr) continue;
    if (view.oldest == nullptr || *lane->by_age.begin() < *view.oldest->by_age.begin()) {
      view.oldest = lane;
    }
    if (view.best == nullptr || IsFirst(*core, *head, *view.head)) {
      view.best = lane;
      view.head = head;
    }
  }
  if (running != device->running) device->running_since_us = core->now_us;
  device->running = running;
  view.width = std::max(core->state->policy->Width(*core->state, *device), ranks);
  return view;
}

void GiveLane(Core* core, Lane* lane, Session* session) {
  if (lane->holder != nullptr) {  // its holder has no use for it
    RevokeHolder(core, lane, true);
    return;
  }
  Hold(core, lane, session);
  core->actions.push_back(Grant{session->id, lane->id});
}

// In each lane, the next against the holder. With fewer lanes at once than there are, the best of
// the others may be before both. Whether somebody has to go.
bool PreemptInLanes(Core* core, const Device& device, const View& view) {
  bool any = false;
  for (Lane* const lane : device.lanes) {
    const Session* const holder = lane->holder;
    if (holder == nullptr || !holder->progressing() || holder->revoked) continue;
    Session* const head = Head(core, *lane);
    if (head == nullptr || !ShouldPreempt(*core, *head, *holder)) continue;
    const bool elsewhere =
        view.head != nullptr && view.occupied >= view.width && IsFirst(*core, *view.head, *head);
    RevokeHolder(core, lane, !elsewhere);
    any = true;
  }
  return any;
}

int64_t NextLook(Core* core, const Device& device, const View& view) {
  const State& state = *core->state;
  int64_t next = kUnlimited;
  for (Lane* const lane : device.lanes) {
    Session* const holder = lane->holder;
    if (holder == nullptr) continue;
    if (holder->revoked) {
      const int64_t due = holder->revoked_us + state.limits.iteration_max_us;
      if (due > core->now_us) next = std::min(next, due);
      continue;
    }
    if (!holder->progressing() || (lane->waiting.empty() && view.head == nullptr)) continue;
    if (holder->promised_us > core->now_us) next = std::min(next, holder->promised_us);
    const int64_t every = state.policy->RecheckUs(state, *holder);
    if (every > 0) {
      const int64_t first = holder->granted_us + every;
      next = std::min(next, first > core->now_us ? first : core->now_us + every);
    }
    if (!state.policy->PromisesTurn()) continue;
    for (const Lane* const starved : {lane, view.oldest}) {
      if (starved == nullptr || starved->by_age.empty()) continue;
      const int64_t due = std::max(starved->by_age.begin()->rank + state.limits.starvation_us,
                                   holder->granted_us + state.limits.slice_us);
      next = std::min(next, std::max(due, core->now_us + 1));
    }
  }
  const int64_t measures = state.policy->MeasuresUs();
  if (measures > 0 && (device.running > 1 || view.head != nullptr)) {
    next = std::min(next, (core->now_us / measures + 1) * measures);
  }
  if (device.retry_us > core->now_us) next = std::min(next, device.retry_us);
  next = std::min(next, device.refuse_us);
  const bool waits = !device.needs.empty() || !device.claims.empty();
  if (waits && state.policy->DisplacesLater()) {
    next = std::min(next, core->now_us + state.limits.swap_slice_us / 4);
  }
  return next;
}

void ReportOverstays(Core* core, const Device& device) {
  for (const Lane* const lane : device.lanes) {
    Session* const holder = lane->holder;
    if (holder == nullptr || !holder->revoked || holder->reported) continue;
    const int64_t overstay = core->now_us - holder->revoked_us;
    if (overstay < core->state->limits.iteration_max_us) continue;
    holder->reported = true;
    core->actions.push_back(Report{holder->id, lane->id, overstay});
  }
}

}  // namespace

void List(Core* core, Session* session) {
  Unlist(core, session);
  if (!session->eligible()) {
    if (session->phase == Phase::kAdmitted && session->place.residence == Residence::kDevice) {
      session->waiting_us = 0;
    }
    return;
  }
  core->devices.insert(session->about.device);
  if (session->waiting_us == 0) session->waiting_us = core->now_us;
  Activate(core, session);
  if (session->gang()) {
    ListGangMember(core, session);
    return;
  }
  Lane* const lane = core->LaneOf(session->lane);
  // A session that slept, or moved, has at most one slice of credit.
  session->virtual_us =
      std::max(session->virtual_us, lane->virtual_floor_us - core->state->limits.slice_us);
  session->turn = {core->state->policy->Rank(*core->state, *session), session->arrival,
                   session->id};
  session->age = {session->waiting_us, session->arrival, session->id};
  lane->waiting.insert(session->turn);
  lane->by_age.insert(session->age);
}

void Unlist(Core* core, Session* session) {
  if (session->turn.session == 0) return;
  core->devices.insert(session->about.device);
  --core->UserOf(*session)->active;
  if (session->gang()) {
    UnlistGangMember(core, session);
  } else {
    Lane* const lane = core->LaneOf(session->lane);
    lane->waiting.erase(session->turn);
    lane->by_age.erase(session->age);
  }
  session->turn = Key();
}

void Hold(Core* core, Lane* lane, Session* session) {
  assert(lane->holder == nullptr && !session->granted && session->lane == lane->id);
  Unlist(core, session);
  Activate(core, session);
  lane->holder = session;
  if (lane->reserved == session->id) {
    lane->reserved = 0;
    session->reserving = 0;
  }
  lane->handing_on = false;
  lane->published.clear();
  lane->told = false;
  session->granted = true;
  session->inside = session->uses_lane && session->ephemeral_bytes > 0;
  session->revoked = false;
  session->reported = false;
  // Otherwise who made it wait would push it out before it does anything.
  if (Starves(*core, *session)) session->promised_us = core->now_us + core->state->limits.slice_us;
  session->granted_us = core->now_us;
  session->waited_since_us = std::exchange(session->waiting_us, 0);
  lane->virtual_floor_us = std::max(lane->virtual_floor_us, session->virtual_us);
  core->state->user_floor_us =
      std::max(core->state->user_floor_us, core->UserOf(*session)->virtual_us);
  core->devices.insert(lane->device);
  // A gang's ranks are granted on devices to which nothing happened: a standstill ends there, too.
  core->state->devices.at(lane->device).refuse_us = kUnlimited;
  Account(core, session);
}

void LetGo(Core* core, Session* session) {
  Lane* const lane = core->LaneOf(session->lane);
  assert(lane->holder == session && session->granted);
  lane->holder = nullptr;
  lane->handing_on = false;
  session->granted = false;
  session->inside = false;
  session->revoked = false;
  // It went before it did anything: it has waited all the time.
  if (session->progress_us <= session->granted_us) session->waiting_us = session->waited_since_us;
  --core->UserOf(*session)->active;
  core->devices.insert(lane->device);
  Account(core, session);
}

void RevokeHolder(Core* core, Lane* lane, bool hand_on) {
  Session* const holder = lane->holder;
  assert(holder != nullptr);
  lane->handing_on = hand_on && !lane->closing;
  Publish(core, lane);
  core->devices.insert(lane->device);
  if (holder->revoked) return;
  holder->revoked = true;
  holder->revoked_us = core->now_us;
  core->actions.push_back(Revoke{holder->id, lane->id});
  if (!holder->gang()) return;
  for (const SessionId id : core->state->gangs.at(holder->about.job).members) {
    const Session& mate = *core->Find(id);
    if (mate.granted && !mate.revoked) RevokeHolder(core, core->LaneOf(mate.lane), hand_on);
  }
}

void OnSwitched(Core* core, const Switched& event) {
  Lane* lane = core->LaneOf(event.lane);
  Session* const from = lane == nullptr ? nullptr : lane->holder;
  if (from == nullptr || from->id != event.from) return;
  core->devices.insert(lane->device);
  if (from->place.residence == Residence::kComingIn) return;  // the lane is kept for it
  LetGo(core, from);
  List(core, from);
  Session* const to = core->Find(event.to);
  if (to != nullptr && to->lane == event.lane && to->phase != Phase::kQueued) {
    const bool was_eligible = to->eligible();
    Hold(core, lane, to);
    // It changed its state while the worker handed over: it goes at its next boundary.
    if (!was_eligible || lane->closing || lane->reserved != 0) RevokeHolder(core, lane, false);
  }
  LeaveIfEvicted(core, from);
  FinishClosing(core, lane);
}

bool ShouldPreempt(const Core& core, const Session& waiting, const Session& running) {
  const State& state = *core.state;
  if (core.now_us < running.promised_us) return false;
  if (Starves(core, waiting)) {
    return core.now_us - running.granted_us >= state.limits.slice_us;
  }
  return state.policy->Preempts(state, waiting, running, core.now_us);
}

Session* Head(Core* core, const Lane& lane) {
  if (lane.reserved != 0 || lane.waiting.empty()) return nullptr;
  const Key& oldest = *lane.by_age.begin();
  const bool starved = core->state->policy->PromisesTurn() &&
                       core->now_us - oldest.rank >= core->state->limits.starvation_us;
  return core->Find(starved ? oldest.session : lane.waiting.begin()->session);
}

void GiveTurns(Core* core, Device* device) {
  device->timer_us = kUnlimited;
  if (device->lost) return;
  View view = Look(core, device);
  while (view.head != nullptr && view.occupied < view.width) {
    GiveLane(core, view.best, view.head);
    view = Look(core, device);
  }
  if (PreemptInLanes(core, *device, view)) view = Look(core, device);
  while (view.worst != nullptr && (view.occupied - view.leaving > view.width ||
                                   (view.head != nullptr && view.leaving == 0 &&
                                    ShouldPreempt(*core, *view.head, *view.worst->holder)))) {
    RevokeHolder(core, view.worst, false);
    view = Look(core, device);
  }
  for (Lane* const lane : device->lanes) {
    if (lane->holder != nullptr && lane->holder->revoked) Publish(core, lane);
  }
  ReportOverstays(core, *device);
  device->timer_us = NextLook(core, *device, view);
}

}  // namespace scheduler
