#include "replay/match.h"

#include <gtest/gtest.h>

#include "tests/replay/letters.h"

namespace replay {
namespace {

using testing::LetterArguments;
using testing::Letters;

class MatchTest : public ::testing::Test {
 protected:
  void Learn(std::string_view text, int times) {
    for (int i = 0; i < times; ++i) known_.Learn(Letters::Iteration(text));
  }
  MatchAction Op(char letter, uint32_t number = 0) {
    LetterArguments arguments;
    arguments.number = number;
    step_ =
        Step(known_, MatchEvent::kOp, {Letters::Key(letter), Letters::Bytes(arguments)}, &match_);
    return step_.action;
  }
  MatchAction Event(MatchEvent event) {
    step_ = Step(known_, event, {}, &match_);
    return step_.action;
  }

  Letters letters_;
  Template known_{&letters_.callees()};
  Match match_;
  MatchStep step_;
};

TEST_F(MatchTest, HoldsUntilTheBodyIsComplete) {
  Learn("abc", 3);
  EXPECT_EQ(Op('a'), MatchAction::kHold);
  EXPECT_EQ(Op('b'), MatchAction::kHold);
  EXPECT_EQ(Op('c'), MatchAction::kReplay);
  EXPECT_EQ(match_.phase, MatchPhase::kBetween);
  EXPECT_EQ(Event(MatchEvent::kBoundary), MatchAction::kNone);
  EXPECT_EQ(Op('a'), MatchAction::kHold);
}

TEST_F(MatchTest, AnotherOperationSendsWhatWasHeldUntilABodyBegins) {
  Learn("abc", 3);
  Op('a');
  Op('b');
  EXPECT_EQ(Op('x'), MatchAction::kSendHeldThenOp);
  EXPECT_EQ(step_.held, 2u);
  EXPECT_EQ(match_.phase, MatchPhase::kLost);
  EXPECT_EQ(Op('c'), MatchAction::kSend);
  EXPECT_EQ(Op('a'), MatchAction::kHold);
  Event(MatchEvent::kBoundary);
  EXPECT_EQ(match_.phase, MatchPhase::kBetween);
}

TEST_F(MatchTest, ABodyMayComeWhereItHasNeverCome) {
  Learn("ab|cd", 3);
  LetterArguments arguments;
  Op('a');
  Op('b');
  Event(MatchEvent::kWait);
  Op('x');
  Event(MatchEvent::kWait);
  step_ =
      Step(known_, MatchEvent::kOp, {Letters::Key('c', true), Letters::Bytes(arguments)}, &match_);
  EXPECT_EQ(step_.action, MatchAction::kHold);
}

TEST_F(MatchTest, AnotherArgumentSendsWhatWasHeldAndGoesOnAfterTheBody) {
  Learn("ab|cd", 3);
  known_.Learn(Letters::Iteration("ab"));
  known_.Learn(Letters::Iteration("abef"));
  Learn("abef", 2);
  Op('a');
  EXPECT_EQ(Op('b', 5), MatchAction::kSendHeldThenOp);
  EXPECT_EQ(step_.held, 1u);
  EXPECT_EQ(match_.values.size(), 0u);
  EXPECT_EQ(Op('e'), MatchAction::kHold);
  EXPECT_EQ(Op('f'), MatchAction::kReplay);
}

TEST_F(MatchTest, AWaitSendsWhatWasHeld) {
  Learn("abcd", 3);
  Op('a');
  Op('b');
  EXPECT_EQ(Event(MatchEvent::kWait), MatchAction::kSendHeld);
  EXPECT_EQ(step_.held, 2u);
  EXPECT_EQ(Event(MatchEvent::kWait), MatchAction::kNone);
  EXPECT_EQ(Op('c'), MatchAction::kSend);
  EXPECT_EQ(Op('d'), MatchAction::kSend);
  EXPECT_EQ(match_.phase, MatchPhase::kBetween);
}

TEST_F(MatchTest, AnEarlyBoundarySendsWhatWasHeld) {
  Learn("abcd", 3);
  Op('a');
  EXPECT_EQ(Event(MatchEvent::kBoundary), MatchAction::kSendHeld);
  EXPECT_EQ(step_.held, 1u);
  EXPECT_EQ(Event(MatchEvent::kBoundary), MatchAction::kNone);
}

TEST_F(MatchTest, WhatIsNotReadyIsSent) {
  Learn("ab", 2);
  EXPECT_EQ(Op('a'), MatchAction::kSend);
  EXPECT_EQ(match_.phase, MatchPhase::kFollowing);
  EXPECT_EQ(Op('b'), MatchAction::kSend);
  EXPECT_EQ(match_.phase, MatchPhase::kBetween);
}

TEST_F(MatchTest, NothingIsLostWhenTheTemplateIsForgottenUnderIt) {
  Learn("abcd", 3);
  Op('a');
  Op('b');
  known_.Invalidate({.kind = Loss::Kind::kModule, .module = {'d'}});
  EXPECT_EQ(known_.bodies(), 0u);
  EXPECT_EQ(Op('c'), MatchAction::kSendHeldThenOp);
  EXPECT_EQ(step_.held, 2u);
  OpStream sent;
  ASSERT_TRUE(Fill(*match_.body, step_.held, match_.values, &sent));
  EXPECT_EQ(sent, Letters::Iteration("ab"));
}

TEST_F(MatchTest, APlaceOfAnOlderTemplateIsNotTrusted) {
  Learn("ab", 3);
  Learn("abcd", 3);
  Op('a');
  EXPECT_EQ(Op('b'), MatchAction::kReplay);
  known_.Invalidate({.kind = Loss::Kind::kModule, .module = {'a'}});
  Learn("xcdef", 1);  // where `ab` was
  Learn("xghij", 1);
  EXPECT_EQ(Op('c'), MatchAction::kSend);
  EXPECT_EQ(match_.phase, MatchPhase::kLost);
}

TEST_F(MatchTest, CollectsTheWordsOfPatches) {
  LetterArguments arguments;
  for (uint32_t i = 0; i < 3; ++i) {
    arguments.number = i;
    known_.Learn(Letters::Iteration("ab", arguments));
  }
  Op('a', 77);
  EXPECT_EQ(Op('b', 78), MatchAction::kReplay);
  EXPECT_EQ(match_.values, (std::vector<uint64_t>{77, 78}));
  Event(MatchEvent::kBoundary);
  Op('a', 79);
  arguments.other = 1;  // no patch
  step_ = Step(known_, MatchEvent::kOp, {Letters::Key('b'), Letters::Bytes(arguments)}, &match_);
  EXPECT_EQ(step_.action, MatchAction::kSendHeldThenOp);
  EXPECT_EQ(match_.values, (std::vector<uint64_t>{79}));
}

}  // namespace
}  // namespace replay
