// The turn of one session in its lane, as a pure machine: Step(turn, event) says what follows.
//
// A lane is memory that several sessions use one after another. The machine knows of one session
// and its lane; which session is next is the business of daemon/worker/turn_table.h. A program in
// in-process mode has the same machine in its own process (shim/inprocess/gate.h).
//
// A turn does not say whether the session has work: a session may have work while its memory is on
// the host, and may be idle while it holds its lane.
//
// Thread safety: pure.
#pragma once

#include <cstdint>

namespace ipc {

enum class Turn : uint32_t {
  kAbsent,     // its memory is on the host: it is let into no lane
  kOutside,    // another session may have the lane; this one waits for it when it has work
  kReturning,  // its memory comes from the host, and so does the lane's: the lane is kept for it
  kHolding,    // it works
  kRevoked,    // it works until its next boundary
  kDraining,   // it has stopped, and the device has not
};

enum class TurnEvent : uint32_t {
  kGrant,       // the lane is the session's, or a revoke is taken back
  kRevoke,      // it is to leave at its next boundary
  kClose,       // it leaves: no further work passes
  kDeviceDone,  // the device has finished what had passed
  kLaneLost,    // the lane is not the session's any more, without a hand-over
  kSwappedOut,
  kTakeLane,  // its memory is about to come back, and part of it lives in the lane
  kSwappedIn,
};

struct TurnRule {
  Turn from;
  TurnEvent event;
  Turn to;
};

// An event that has no row for a turn does not change it: lanewayd's orders cross with what a
// session does.
inline constexpr TurnRule kTurnRules[] = {
    {Turn::kAbsent, TurnEvent::kTakeLane, Turn::kReturning},
    {Turn::kAbsent, TurnEvent::kSwappedIn, Turn::kOutside},
    {Turn::kOutside, TurnEvent::kGrant, Turn::kHolding},
    {Turn::kOutside, TurnEvent::kSwappedOut, Turn::kAbsent},
    {Turn::kReturning, TurnEvent::kLaneLost, Turn::kAbsent},
    {Turn::kReturning, TurnEvent::kSwappedOut, Turn::kAbsent},
    {Turn::kReturning, TurnEvent::kSwappedIn, Turn::kHolding},
    {Turn::kHolding, TurnEvent::kRevoke, Turn::kRevoked},
    {Turn::kHolding, TurnEvent::kClose, Turn::kDraining},
    {Turn::kHolding, TurnEvent::kLaneLost, Turn::kOutside},
    {Turn::kHolding, TurnEvent::kSwappedOut, Turn::kAbsent},
    {Turn::kRevoked, TurnEvent::kGrant, Turn::kHolding},
    {Turn::kRevoked, TurnEvent::kClose, Turn::kDraining},
    {Turn::kRevoked, TurnEvent::kLaneLost, Turn::kOutside},
    {Turn::kRevoked, TurnEvent::kSwappedOut, Turn::kAbsent},
    {Turn::kDraining, TurnEvent::kDeviceDone, Turn::kOutside},
    {Turn::kDraining, TurnEvent::kLaneLost, Turn::kOutside},
    {Turn::kDraining, TurnEvent::kSwappedOut, Turn::kAbsent},
};

[[nodiscard]] constexpr Turn Step(Turn turn, TurnEvent event) {
  for (const TurnRule& rule : kTurnRules) {
    if (rule.from == turn && rule.event == event) return rule.to;
  }
  return turn;
}

// True when some event leads from one turn to the other.
constexpr bool IsLegal(Turn from, Turn to) {
  for (const TurnRule& rule : kTurnRules) {
    if (rule.from == from && rule.to == to) return true;
  }
  return false;
}

// No other session of the lane is let in.
constexpr bool HoldsLane(Turn turn) { return turn != Turn::kAbsent && turn != Turn::kOutside; }

// Work passes to the device.
constexpr bool MayWork(Turn turn) { return turn == Turn::kHolding || turn == Turn::kRevoked; }

}  // namespace ipc
