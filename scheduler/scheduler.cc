#include "scheduler/scheduler.h"

#include <cassert>

namespace scheduler {
namespace {

unsigned CountPhase(const State& state, Phase phase) {
  unsigned count = 0;
  for (const std::pair<const SessionId, Session>& entry : state.sessions) {
    count += entry.second.phase == phase;
  }
  return count;
}

void AdmitWhileRoom(State* state, const Policy& policy, int64_t now_us,
                    std::vector<Action>* actions) {
  while (CountPhase(*state, Phase::kQueued) != 0 &&
         state->CountAdmitted() < state->limits.sessions_max) {
    const SessionId next = policy.Next(*state, now_us);
    const std::map<SessionId, Session>::iterator found = state->sessions.find(next);
    assert(found != state->sessions.end() && found->second.phase == Phase::kQueued);
    found->second.phase = Phase::kAdmitted;
    actions->push_back(Admit{next});
  }
  assert(state->CountAdmitted() <= state->limits.sessions_max);
}

// Waiting is worth it only when a place is about to come free, and for one session each.
bool PlaceIsComing(const State& state) {
  return CountPhase(state, Phase::kQueued) <= state.CountEnding();
}

std::vector<Action> OnArrived(State* state, const Policy& policy, const SessionArrived& event,
                              int64_t now_us) {
  std::vector<Action> actions;
  assert(state->sessions.count(event.session) == 0);
  state->sessions[event.session] = {event.job, Phase::kQueued, state->arrivals++, now_us};
  AdmitWhileRoom(state, policy, now_us, &actions);
  if (state->sessions[event.session].phase != Phase::kQueued) return actions;
  if (PlaceIsComing(*state)) {
    actions.push_back(Queue{event.session, "waits for the place of a program that is ending"});
    return actions;
  }
  state->sessions.erase(event.session);
  actions.push_back(Reject{
      event.session, "all " + std::to_string(state->limits.sessions_max) + " sessions are taken"});
  return actions;
}

}  // namespace

unsigned State::CountEnding() const { return CountPhase(*this, Phase::kEnding); }

unsigned State::CountAdmitted() const {
  return CountPhase(*this, Phase::kAdmitted) + CountEnding();
}

std::vector<Action> OnEvent(State* state, const Policy& policy, const Event& event,
                            int64_t now_us) {
  if (const SessionArrived* arrived = std::get_if<SessionArrived>(&event)) {
    return OnArrived(state, policy, *arrived, now_us);
  }
  std::vector<Action> actions;
  if (const SessionEnding* ending = std::get_if<SessionEnding>(&event)) {
    const std::map<SessionId, Session>::iterator found = state->sessions.find(ending->session);
    if (found != state->sessions.end() && found->second.phase == Phase::kAdmitted) {
      found->second.phase = Phase::kEnding;
    }
  } else if (const SessionLeft* left = std::get_if<SessionLeft>(&event)) {
    state->sessions.erase(left->session);
    AdmitWhileRoom(state, policy, now_us, &actions);
  }
  return actions;
}

}  // namespace scheduler
