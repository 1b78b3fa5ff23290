// Follows an iteration through its template, operation by operation: which are held back because a
// body is likely to come, which are sent, and when a whole body has come and one message replays
// it.
//
// Nothing is lost or done twice: every operation is either sent, or part of a replayed body, or
// held; what is held is sent as usual, in order, before anything else, as soon as the iteration
// goes on otherwise, the host waits, or the iteration ends.
//
// Thread safety: none; pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "replay/template.h"

namespace replay {

enum class MatchPhase : uint8_t {
  kBetween,    // at the begin, or a body was complete: the next operation chooses a body
  kHolding,    // in a body that is ready; all of its operations so far are held
  kFollowing,  // in a body that is not, or that came with other arguments: operations are sent
  kLost,       // nothing known goes on like this: the next operation that begins a body leads back
};

enum class MatchEvent : uint8_t {
  kOp,        // the program asks for an operation
  kWait,      // the host waits for the device, looks how far it is, or ends something that
              // operations may use (which a Loss then tells the template)
  kBoundary,  // the iteration ends
};

enum class MatchAction : uint8_t {
  kNone,
  kSend,            // the operation, as usual
  kHold,            // the operation
  kReplay,          // the body: the operation was its last. Nothing is held any more
  kSendHeld,        // the first `held` operations of the body, as usual
  kSendHeldThenOp,  // the same, and then the operation
};

struct MatchStep {
  MatchAction action = MatchAction::kNone;
  size_t held = 0;  // of kSendHeld and kSendHeldThenOp
};

struct Match {
  MatchPhase phase = MatchPhase::kBetween;
  Template::Place place = Template::kBegin;
  uint64_t version = 0;  // of the template, when `place` was not the begin
  // What the last step speaks of; Fill() makes operations of it.
  std::shared_ptr<const Body> body;
  size_t next = 0;               // operations of the body that have come
  std::vector<uint64_t> values;  // of the body's patches, as far as they have come and matched
};

// `op` is the operation of kOp, and of no other event. The template may change between steps.
MatchStep Step(const Template& known, MatchEvent event, const OpView& op, Match* match);

}  // namespace replay
