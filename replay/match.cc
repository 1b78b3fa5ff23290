#include "replay/match.h"

namespace replay {
namespace {

// With the operation itself, or without.
MatchStep Release(size_t held, bool with_op) {
  if (held == 0) return {with_op ? MatchAction::kSend : MatchAction::kNone, 0};
  return {with_op ? MatchAction::kSendHeldThenOp : MatchAction::kSendHeld, held};
}

void Enter(const Template& known, Template::Place place, Match* match) {
  match->place = place;
  match->version = known.version();
  match->body = known.body(place);
  match->next = 0;
  match->values.clear();
  match->phase = known.IsReady(place) ? MatchPhase::kHolding : MatchPhase::kFollowing;
}

// One operation of the body further, whether it was held or sent.
void Advance(Match* match) {
  if (++match->next == match->body->ops.size()) match->phase = MatchPhase::kBetween;
}

MatchStep StepInBody(const OpView& op, size_t held, Match* match) {
  if (match->body->ops.key(match->next) != op.key) {
    match->phase = MatchPhase::kLost;
    return Release(held, true);
  }
  if (match->phase == MatchPhase::kHolding &&
      MatchArguments(*match->body, match->next, op.arguments, &match->values)) {
    Advance(match);
    return {match->phase == MatchPhase::kBetween ? MatchAction::kReplay : MatchAction::kHold, 0};
  }
  match->phase = MatchPhase::kFollowing;
  Advance(match);
  return Release(held, true);
}

// The place whose body the operation may begin, when no body is under way.
Template::Place Choose(const Template& known, const OpKey& key, const Match& match) {
  const bool valid = match.place == Template::kBegin || match.version == known.version();
  if (match.phase == MatchPhase::kBetween && valid) {
    const Template::Place next = known.Next(match.place, key);
    if (next != Template::kNowhere) return next;
  }
  return known.Anywhere(key);
}

MatchStep StepOp(const Template& known, const OpView& op, size_t held, Match* match) {
  const bool inside =
      match->phase == MatchPhase::kHolding || match->phase == MatchPhase::kFollowing;
  if (inside && match->version == known.version()) return StepInBody(op, held, match);
  if (inside) {  // the body may be gone
    match->phase = MatchPhase::kLost;
    return Release(held, true);
  }
  const Template::Place next = Choose(known, op.key, *match);
  if (next == Template::kNowhere) {
    match->phase = MatchPhase::kLost;
    return {MatchAction::kSend, 0};
  }
  Enter(known, next, match);
  return StepInBody(op, 0, match);
}

}  // namespace

MatchStep Step(const Template& known, MatchEvent event, const OpView& op, Match* match) {
  const size_t held = match->phase == MatchPhase::kHolding ? match->next : 0;
  switch (event) {
    case MatchEvent::kOp:
      return StepOp(known, op, held, match);
    case MatchEvent::kWait:
      if (match->phase == MatchPhase::kHolding) match->phase = MatchPhase::kFollowing;
      break;
    case MatchEvent::kBoundary:
      match->phase = MatchPhase::kBetween;
      match->place = Template::kBegin;
      break;
  }
  return Release(held, false);
}

}  // namespace replay
