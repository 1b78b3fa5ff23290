#include "daemon/worker/lane_turns.h"

namespace worker {
namespace {

// An iteration counts as complete, too, when its client waits for the end of as much work as the
// last one had, and when the program does not iterate any more.
bool MayLeave(LaneState* state, const LaneFacts& facts) {
  if (!LaneIsEmpty(*state, facts)) return false;
  state->at_boundary = state->at_boundary || facts.waits_at_the_end || !facts.iterates;
  return state->at_boundary;
}

// While the thread waits in a call no boundary comes, and the client's words are not asked: more
// messages may lie behind that call.
bool MayLeaveInCall(const LaneState& state, const LaneFacts& facts) {
  return !facts.uses_lane || (state.at_boundary && !facts.pinned);
}

// What lives in the lane is its iteration's, which may have begun since the order was given.
LaneAction OnOrderedOut(const LaneState& state, const LaneFacts& facts) {
  if (facts.on_host) return LaneAction::kRefuseAlreadyOut;
  const bool between = state.at_boundary && !facts.pinned;
  if (facts.inside && facts.uses_lane && !between && !facts.with_lane)
    return LaneAction::kRefuseInIteration;
  return facts.takes_memory ? LaneAction::kRefuseTakesMemory : LaneAction::kMayGo;
}

}  // namespace

bool LaneIsEmpty(const LaneState& state, const LaneFacts& facts) {
  if (!facts.uses_lane) return true;
  if (facts.pinned) return false;
  return state.at_boundary || facts.client_is_done;
}

LaneAction Step(LaneState* state, LaneEvent event, const LaneFacts& facts) {
  const bool revoked = facts.gate == GateState::kRevoked;
  switch (event) {
    case LaneEvent::kWork:
      state->at_boundary = false;
      return LaneAction::kNone;
    case LaneEvent::kBoundary:
      state->at_boundary = true;
      if (facts.gate == GateState::kClosed || !(revoked || facts.turn_is_over))
        return LaneAction::kNone;
      return MayLeave(state, facts) ? LaneAction::kLeave : LaneAction::kNone;
    case LaneEvent::kLook:
      return revoked && MayLeave(state, facts) ? LaneAction::kLeave : LaneAction::kNone;
    case LaneEvent::kWait:
      return revoked && MayLeaveInCall(*state, facts) ? LaneAction::kLeave : LaneAction::kNone;
    case LaneEvent::kSilence:
      state->at_boundary =
          state->at_boundary || (facts.device_is_done && LaneIsEmpty(*state, facts));
      return LaneAction::kNone;
    case LaneEvent::kRest:
      return MayLeave(state, facts) ? LaneAction::kMayGo : LaneAction::kNone;
    case LaneEvent::kOrderedOut:
      return OnOrderedOut(*state, facts);
  }
  return LaneAction::kNone;
}

}  // namespace worker
