// The turns of a session in its lane: by a table, and at random beside a model that is told every
// event and looks at them all anew.
#include "daemon/worker/lane_turns.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "daemon/worker/iteration_work.h"
#include "daemon/worker/memory_place.h"

namespace worker {
namespace {

struct Row {
  const char* name;
  LaneState before;
  LaneEvent event;
  LaneFacts facts;
  LaneAction action;
  bool at_boundary;  // afterwards
};

constexpr LaneState kInIteration{.at_boundary = false};
constexpr LaneState kBetween{.at_boundary = true};

TEST(LaneTurnsTest, EachEventHasItsAction) {
  const LaneFacts open{.uses_lane = true, .iterates = true};
  LaneFacts revoked = open;
  revoked.gate = GateState::kRevoked;
  LaneFacts closed = open;
  closed.gate = GateState::kClosed;
  const auto with = [](LaneFacts facts, bool LaneFacts::*fact) {
    facts.*fact = true;
    return facts;
  };
  LaneFacts no_iterations = with(revoked, &LaneFacts::client_is_done);
  no_iterations.iterates = false;
  LaneFacts no_lane = revoked;
  no_lane.uses_lane = false;
  const LaneFacts order{.uses_lane = true, .inside = true};
  LaneFacts outside = order;
  outside.inside = false;
  using E = LaneEvent;
  using A = LaneAction;
  const std::vector<Row> rows = {
      {"work begins an iteration", kBetween, E::kWork, {}, A::kNone, false},
      {"a boundary ends it", kInIteration, E::kBoundary, open, A::kNone, true},
      {"revoked, a boundary leaves", kInIteration, E::kBoundary, revoked, A::kLeave, true},
      {"without a daemon its turn ends", kInIteration, E::kBoundary,
       with(open, &LaneFacts::turn_is_over), A::kLeave, true},
      {"a closed gate is left already", kInIteration, E::kBoundary, closed, A::kNone, true},
      {"pinned blocks stay", kInIteration, E::kBoundary, with(revoked, &LaneFacts::pinned),
       A::kNone, true},
      {"an open gate is kept", kBetween, E::kLook, open, A::kNone, true},
      {"revoked between iterations", kBetween, E::kLook, revoked, A::kLeave, true},
      {"revoked inside one", kInIteration, E::kLook, revoked, A::kNone, false},
      {"the client is ahead of its boundary", kInIteration, E::kLook,
       with(revoked, &LaneFacts::client_is_done), A::kNone, false},
      {"the client sleeps at the end of one", kInIteration, E::kLook,
       with(with(revoked, &LaneFacts::client_is_done), &LaneFacts::waits_at_the_end), A::kLeave,
       true},
      {"a program without iterations", kInIteration, E::kLook, no_iterations, A::kLeave, true},
      {"waiting in a call between iterations", kBetween, E::kWait, revoked, A::kLeave, true},
      {"waiting in a call inside one", kInIteration, E::kWait,
       with(revoked, &LaneFacts::client_is_done), A::kNone, false},
      {"waiting in a call with pinned blocks", kBetween, E::kWait,
       with(revoked, &LaneFacts::pinned), A::kNone, true},
      {"waiting in a call without a lane", kInIteration, E::kWait, no_lane, A::kLeave, false},
      {"silent while the device works", kInIteration, E::kSilence,
       with(open, &LaneFacts::client_is_done), A::kNone, false},
      {"silent and done", kInIteration, E::kSilence,
       with(with(open, &LaneFacts::client_is_done), &LaneFacts::device_is_done), A::kNone, true},
      {"rests between iterations", kBetween, E::kRest, open, A::kMayGo, true},
      {"rests inside one", kInIteration, E::kRest, open, A::kNone, false},
      {"ordered out between iterations", kBetween, E::kOrderedOut, order, A::kMayGo, true},
      {"ordered out inside one", kInIteration, E::kOrderedOut, order, A::kRefuseInIteration, false},
      {"ordered out inside one, with its lane", kInIteration, E::kOrderedOut,
       with(order, &LaneFacts::with_lane), A::kMayGo, false},
      {"ordered out inside one, outside its lane", kInIteration, E::kOrderedOut, outside, A::kMayGo,
       false},
      {"ordered out with pinned blocks", kBetween, E::kOrderedOut, with(order, &LaneFacts::pinned),
       A::kRefuseInIteration, true},
      {"ordered out twice", kBetween, E::kOrderedOut, with(order, &LaneFacts::on_host),
       A::kRefuseAlreadyOut, true},
      {"ordered out about to take memory", kBetween, E::kOrderedOut,
       with(order, &LaneFacts::takes_memory), A::kRefuseTakesMemory, true},
  };
  for (const Row& row : rows) {
    LaneState state = row.before;
    EXPECT_EQ(Step(&state, row.event, row.facts), row.action) << row.name;
    EXPECT_EQ(state.at_boundary, row.at_boundary) << row.name;
  }
}

// Whatever comes in which order: a session gives its lane up only when nothing of an iteration, and
// nothing pinned, lies there, and only when it is to.
TEST(LaneTurnsTest, AtRandomItNeverLeavesWhatItNeeds) {
  std::mt19937 random(20);
  const auto coin = [&random] { return random() % 2 == 0; };
  LaneState state;
  bool worked = false;  // since the last boundary
  for (int round = 0; round < 200'000; ++round) {
    LaneFacts facts;
    facts.gate = static_cast<GateState>(random() % 3);
    facts.uses_lane = coin();
    facts.inside = coin();
    facts.turn_is_over = coin();
    facts.pinned = coin();
    facts.client_is_done = coin();
    facts.waits_at_the_end = coin();
    facts.iterates = coin();
    facts.device_is_done = coin();
    facts.with_lane = coin();
    const LaneEvent event = static_cast<LaneEvent>(random() % 7);
    const LaneAction action = Step(&state, event, facts);
    if (event == LaneEvent::kWork) worked = true;
    if (event == LaneEvent::kBoundary) worked = false;
    if (worked && state.at_boundary) {  // it takes the iteration for complete
      ASSERT_TRUE(!facts.uses_lane || (facts.client_is_done && !facts.pinned));
      worked = false;
    }
    const bool lies = facts.uses_lane && (facts.pinned || worked);
    if (action == LaneAction::kLeave) {
      ASSERT_FALSE(lies);
      ASSERT_NE(facts.gate, GateState::kClosed);
      ASSERT_TRUE(facts.gate == GateState::kRevoked || event == LaneEvent::kBoundary);
    }
    if (action == LaneAction::kMayGo) {
      ASSERT_TRUE(!lies || (event == LaneEvent::kOrderedOut && (facts.with_lane || !facts.inside)));
    }
    ASSERT_EQ(state.at_boundary, !worked);
  }
}

// --- handing over --------------------------------------------------------------------------------

TEST(HandOverTest, TheLastPartHandsOver) {
  HandOver hand_over;
  EXPECT_FALSE(hand_over.under_way());
  hand_over.Begin(2);
  EXPECT_FALSE(hand_over.Part());
  EXPECT_FALSE(hand_over.Part());
  EXPECT_TRUE(hand_over.Part());
  EXPECT_TRUE(hand_over.under_way()) << "until the lane is left";
  hand_over.Finish();
  EXPECT_FALSE(hand_over.under_way());
  hand_over.Begin(0);
  EXPECT_TRUE(hand_over.Part()) << "an idle device";
}

TEST(IterationWorkTest, AnIterationIsAsLongAsTheLastOne) {
  IterationWork work;
  work.Add();
  EXPECT_FALSE(work.is_complete()) << "there was none before";
  work.Add();
  work.End();
  work.Add();
  EXPECT_FALSE(work.is_complete());
  work.Add();
  EXPECT_TRUE(work.is_complete());
}

// --- where the memory is -------------------------------------------------------------------------

using scheduler::Place;
using scheduler::Residence;

TEST(MemoryPlaceTest, AMoveIsSeenAsAWhole) {
  MemoryPlace place;
  place.Ordered(true);
  EXPECT_EQ(place.Look(), Place{Residence::kGoingOut});
  EXPECT_FALSE(place.on_host());
  place.Moved(true, true);
  EXPECT_TRUE(place.on_host());
  EXPECT_EQ(place.Look(), (Place{Residence::kHost, 1}));
  place.Ordered(false);
  EXPECT_EQ(place.Look(), (Place{Residence::kComingIn, 1}));
  place.Refused(false);
  EXPECT_EQ(place.Look(), (Place{Residence::kHost, 1}));
  place.Ordered(false);
  place.Moved(false, true);
  EXPECT_EQ(place.Look(), Place{});
  place.Ordered(true);
  place.Refused(true);
  EXPECT_EQ(place.Look(), Place{});
}

// An order that came while another was carried out is not forgotten.
TEST(MemoryPlaceTest, OneOrderDoesNotEndTheOther) {
  MemoryPlace place;
  place.Ordered(true);
  place.Ordered(false);
  place.Moved(true, false);
  EXPECT_TRUE(place.on_host());
  EXPECT_EQ(place.Look(), Place{Residence::kComingIn});
}

}  // namespace
}  // namespace worker
