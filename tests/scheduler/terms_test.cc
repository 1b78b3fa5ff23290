// Terms that change while a session runs or waits, and the device that is known with its first
// memory.
#include <gtest/gtest.h>

#include "scheduler/scheduler.h"
#include "tests/scheduler/actions.h"

namespace scheduler {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

class TermsTest : public testing::Test {
 protected:
  explicit TermsTest(const char* policy = "priority") : state_(policy, LimitsOf()) {
    for (const uint32_t device : {0u, 1u}) On(CapacityChanged{device, 100 * kMiB});
  }
  static Limits LimitsOf() {
    Limits limits;
    limits.sessions_max = 16;
    return limits;
  }
  std::vector<Action> On(const Event& event) { return OnEvent(&state_, event, ++now_us_); }
  void Arrive(SessionId session, uint32_t priority) {
    SessionArrived arrived;
    arrived.session = session;
    arrived.job = session;
    arrived.priority = priority;
    On(arrived);
  }
  State state_;
  int64_t now_us_ = 0;
};

TEST_F(TermsTest, WhoBecomesMoreUrgentGoesBeforeOthersThatWait) {
  for (const SessionId session : {1, 2, 3}) {
    Arrive(session, 5);
    On(Runnable{session});
  }
  ASSERT_TRUE(state_.Find(1)->granted);
  TermsChanged changed{3, 0};
  On(changed);
  EXPECT_EQ(state_.Find(3)->about.priority, 0u);
  EXPECT_TRUE(state_.Find(1)->revoked) << "the one that runs is less urgent";
  const LaneId lane = state_.Find(1)->lane;
  EXPECT_EQ(state_.lanes.at(lane).published.at(0), 3u);
  On(TermsChanged{99, 0});  // unknown sessions change nothing
}

TEST_F(TermsTest, ASessionIsCountedWhereItsFirstMemoryIs) {
  Arrive(1, 5);
  Arrive(2, 5);
  On(Runnable{1});
  const std::vector<Action> actions = On(SessionPlaced{1, 1});
  const Session* const session = state_.Find(1);
  EXPECT_EQ(session->about.device, 1u);
  EXPECT_EQ(state_.lanes.at(session->lane).device, 1u);
  EXPECT_TRUE(session->granted) << "nobody else is there";
  On(MemoryNeeded{1, 60 * kMiB});
  EXPECT_EQ(state_.devices.at(1).charged_bytes, 60 * kMiB);
  EXPECT_EQ(state_.devices.at(0).charged_bytes, 0);
  On(MemoryNeeded{2, 60 * kMiB});
  EXPECT_EQ(state_.Find(2)->persistent_bytes, 60 * kMiB) << "they are not in each other's way";
  On(SessionPlaced{1, 0});
  EXPECT_EQ(state_.Find(1)->about.device, 1u) << "it has memory there";
  On(SessionLeft{1});
  EXPECT_EQ(state_.devices.at(1).charged_bytes, 0);
  EXPECT_TRUE(state_.devices.at(1).lanes.size() <= 1);
}

TEST_F(TermsTest, WhatWasExpectedOnAnotherDeviceIsNotKeptFreeThere) {
  SessionArrived arrived;
  arrived.session = 1;
  arrived.estimate.persistent_bytes = 40 * kMiB;
  arrived.estimate.ephemeral_bytes = 10 * kMiB;
  On(arrived);
  ASSERT_EQ(state_.devices.at(0).charged_bytes, 40 * kMiB);
  On(SessionPlaced{1, 1});
  EXPECT_EQ(state_.devices.at(0).charged_bytes, 0);
  EXPECT_EQ(state_.devices.at(1).charged_bytes, 0);
  EXPECT_EQ(state_.users.at(0).used_bytes.at(0) - state_.devices.at(0).lanes_bytes, 0);
}

}  // namespace
}  // namespace scheduler
