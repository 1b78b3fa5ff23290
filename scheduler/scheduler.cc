#include "scheduler/scheduler.h"

#include <cassert>

namespace scheduler {
namespace {

void AdmitWhileRoom(State* state, std::vector<Action>* actions) {
  std::set<Key>* const claims = &state->devices[0].claims;
  while (!claims->empty() && state->admitted < state->limits.sessions_max) {
    Session* const session = &state->sessions.at(claims->begin()->session);
    claims->erase(claims->begin());
    session->phase = Phase::kAdmitted;
    ++state->admitted;
    actions->push_back(Admit{session->id});
  }
}

std::vector<Action> OnArrived(State* state, const SessionArrived& event, int64_t now_us) {
  std::vector<Action> actions;
  assert(state->sessions.count(event.session) == 0);
  std::set<Key>* const claims = &state->devices[0].claims;
  Session* const session = &state->sessions[event.session];
  session->about = event;
  session->id = event.session;
  session->arrival = state->arrivals++;
  session->arrived_us = now_us;
  session->key = {state->policy->Rank(*state, *session), session->arrival, event.session};
  claims->insert(session->key);
  AdmitWhileRoom(state, &actions);
  if (session->phase != Phase::kQueued) return actions;
  // Waiting is worth it only when a place is about to come free, and for one session each.
  if (claims->size() <= state->ending) {
    actions.push_back(Queue{event.session, "waits for the place of a program that is ending"});
    return actions;
  }
  claims->erase(session->key);
  state->sessions.erase(event.session);
  actions.push_back(Reject{
      event.session, "all " + std::to_string(state->limits.sessions_max) + " sessions are taken"});
  return actions;
}

void Forget(State* state, SessionId id) {
  const Session& session = state->sessions.at(id);
  state->devices[0].claims.erase(session.key);
  state->admitted -= session.phase != Phase::kQueued;
  state->ending -= session.phase == Phase::kEnding;
  state->sessions.erase(id);
}

}  // namespace

State::State(const std::string& policy_name, const Limits& given)
    : limits(given), policy(FindPolicy(policy_name)) {
  assert(policy != nullptr);
}

const Session* State::Find(SessionId session) const {
  const std::unordered_map<SessionId, Session>::const_iterator found = sessions.find(session);
  return found == sessions.end() ? nullptr : &found->second;
}

std::vector<Action> OnEvent(State* state, const Event& event, int64_t now_us) {
  if (const SessionArrived* arrived = std::get_if<SessionArrived>(&event)) {
    return OnArrived(state, *arrived, now_us);
  }
  std::vector<Action> actions;
  if (const SessionEnding* ending = std::get_if<SessionEnding>(&event)) {
    const std::unordered_map<SessionId, Session>::iterator found =
        state->sessions.find(ending->session);
    if (found != state->sessions.end() && found->second.phase == Phase::kAdmitted) {
      found->second.phase = Phase::kEnding;
      ++state->ending;
    }
  } else if (const SessionLeft* left = std::get_if<SessionLeft>(&event)) {
    if (state->sessions.count(left->session) == 0) return actions;
    Forget(state, left->session);
    AdmitWhileRoom(state, &actions);
  } else if (const PolicyChanged* changed = std::get_if<PolicyChanged>(&event)) {
    if (const Policy* const policy = FindPolicy(changed->name)) state->policy = policy;
  }
  return actions;
}

int64_t NextTimerUs(const State& state) {
  return state.timers.empty() ? kUnlimited : state.timers.begin()->rank;
}

}  // namespace scheduler
