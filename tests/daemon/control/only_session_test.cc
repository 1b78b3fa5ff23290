#include "daemon/control/only_session.h"

#include <gtest/gtest.h>

namespace control {
namespace {

Session Running(uint32_t worker, uint64_t lane) {
  Session session;
  session.phase = Phase::kRunning;
  session.worker = worker;
  session.lane = lane;
  return session;
}

class AloneTellTest : public ::testing::Test {
 protected:
  std::vector<OnlySession::Notice> Look() { return only_session_.Change(PlaceOfOnly(sessions_)); }

  std::map<uint64_t, Session> sessions_;
  OnlySession only_session_;
};

TEST_F(AloneTellTest, TheOnlyOneIsToldOnce) {
  EXPECT_TRUE(Look().empty());
  sessions_[1] = Running(3, 5);
  const std::vector<OnlySession::Notice> words = Look();
  ASSERT_EQ(words.size(), 1u);
  EXPECT_EQ(words[0].place, (LanePlace{3, 5}));
  EXPECT_TRUE(words[0].alone);
  EXPECT_TRUE(Look().empty());
}

TEST_F(AloneTellTest, WhoeverComesEndsItEvenBeforeItIsAdmitted) {
  sessions_[1] = Running(3, 5);
  Look();
  sessions_[2];  // queued
  const std::vector<OnlySession::Notice> words = Look();
  ASSERT_EQ(words.size(), 1u);
  EXPECT_EQ(words[0].place, (LanePlace{3, 5}));
  EXPECT_FALSE(words[0].alone);
  sessions_.erase(2);
  EXPECT_EQ(Look().size(), 1u) << "it is alone again";
}

TEST_F(AloneTellTest, InAnotherLaneItIsToldOfBoth) {
  sessions_[1] = Running(3, 5);
  Look();
  sessions_[1].lane = 6;
  const std::vector<OnlySession::Notice> words = Look();
  ASSERT_EQ(words.size(), 2u);
  EXPECT_FALSE(words[0].alone);
  EXPECT_EQ(words[0].place.lane, 5u);
  EXPECT_TRUE(words[1].alone);
  EXPECT_EQ(words[1].place.lane, 6u);
}

TEST_F(AloneTellTest, BetweenTwoWorkersItIsNowhereAndTheNextOneIsTold) {
  sessions_[1] = Running(3, 5);
  Look();
  sessions_[1].phase = Phase::kMoving;
  sessions_[1].worker = 0;
  EXPECT_EQ(Look().size(), 1u);
  sessions_[1].phase = Phase::kEntering;
  sessions_[1].worker = 4;
  EXPECT_TRUE(Look().empty());
  sessions_[1].phase = Phase::kRunning;
  const std::vector<OnlySession::Notice> words = Look();
  ASSERT_EQ(words.size(), 1u);
  EXPECT_EQ(words[0].place.worker, 4u);
  EXPECT_TRUE(words[0].alone);
}

TEST_F(AloneTellTest, WhoHasNoLaneOrAContextOfItsOwnIsNeverTold) {
  sessions_[1] = Running(3, 0);
  EXPECT_TRUE(Look().empty());
  sessions_[1] = Running(0, 5);
  EXPECT_TRUE(Look().empty());
}

TEST_F(AloneTellTest, WhatIsListedStillCounts) {
  sessions_[1] = Running(3, 5);
  sessions_[2] = Running(3, 5);
  sessions_[2].phase = Phase::kEnding;
  EXPECT_TRUE(Look().empty()) << "its work may lie on the device";
}

}  // namespace
}  // namespace control
