// The machine of a session's turn: each event in each turn, and what holds for all of them.
#include "ipc/turn.h"

#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <utility>

namespace ipc {
namespace {

constexpr Turn kTurns[] = {Turn::kAbsent,  Turn::kOutside, Turn::kReturning,
                           Turn::kHolding, Turn::kRevoked, Turn::kDraining};
constexpr TurnEvent kEvents[] = {
    TurnEvent::kGrant,    TurnEvent::kRevoke,     TurnEvent::kClose,    TurnEvent::kDeviceDone,
    TurnEvent::kLaneLost, TurnEvent::kSwappedOut, TurnEvent::kTakeLane, TurnEvent::kSwappedIn};

TEST(TurnTest, EachEventInEachTurn) {
  constexpr Turn A = Turn::kAbsent, O = Turn::kOutside, B = Turn::kReturning, H = Turn::kHolding,
                 R = Turn::kRevoked, D = Turn::kDraining;
  // In the order of kTurns and, across, of kEvents.
  constexpr Turn kAfter[std::size(kTurns)][std::size(kEvents)] = {
      {A, A, A, A, A, A, B, O},  // absent
      {H, O, O, O, O, A, O, O},  // outside
      {B, B, B, B, A, A, B, H},  // returning
      {H, R, D, H, O, A, H, H},  // holding
      {H, R, D, R, O, A, R, R},  // revoked
      {D, D, D, O, O, A, D, D},  // draining
  };
  for (size_t turn = 0; turn < std::size(kTurns); ++turn) {
    for (size_t event = 0; event < std::size(kEvents); ++event) {
      EXPECT_EQ(Step(kTurns[turn], kEvents[event]), kAfter[turn][event])
          << "turn " << turn << ", event " << event;
    }
  }
}

TEST(TurnTest, NoRuleIsSaidTwice) {
  std::set<std::pair<Turn, TurnEvent>> seen;
  for (const TurnRule& rule : kTurnRules) {
    EXPECT_TRUE(seen.insert({rule.from, rule.event}).second);
    EXPECT_NE(rule.from, rule.to) << "an event without a rule changes nothing anyway";
    EXPECT_TRUE(IsLegal(rule.from, rule.to));
  }
}

// A session leaves its lane when the device is done, unless the lane is taken away or the session's
// memory is on the host.
TEST(TurnTest, ALaneIsLeftThroughTheDeviceUnlessItIsTakenAway) {
  for (const TurnRule& rule : kTurnRules) {
    EXPECT_TRUE(HoldsLane(rule.to) || !MayWork(rule.to));
    if (!HoldsLane(rule.from) || HoldsLane(rule.to)) continue;
    const bool taken_away =
        rule.event == TurnEvent::kLaneLost || rule.event == TurnEvent::kSwappedOut;
    EXPECT_TRUE(taken_away || rule.from == Turn::kDraining);
  }
}

TEST(TurnTest, MemoryOnTheHostKeepsASessionFromWorking) {
  for (const TurnEvent event : kEvents) EXPECT_FALSE(MayWork(Step(Turn::kAbsent, event)));
}

}  // namespace
}  // namespace ipc
