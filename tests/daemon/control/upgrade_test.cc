#include "daemon/control/upgrade.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/daemon/control/testing.h"

namespace control {
namespace {

class UpgradeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    children_.AddWorker(1);
    AddRunning(&sessions_, 1, 0, 1);
    AddRunning(&sessions_, 2, 0, 1)->page->obstacles = ipc::kUnknownImage;
    upgrade_.Begin("peer", children_.workers());
  }

  FakeChildren children_;
  SessionTable sessions_;
  Upgrade upgrade_;
};

TEST_F(UpgradeTest, IsAnsweredWhenItsSessionsRunElsewhere) {
  EXPECT_EQ(upgrade_.Release(sessions_), std::vector<uint64_t>{1});
  EXPECT_FALSE(upgrade_.Finish(sessions_).has_value());
  sessions_.Find(1)->phase = Phase::kMoving;
  EXPECT_FALSE(upgrade_.Finish(sessions_).has_value());
  sessions_.Find(1)->phase = Phase::kRunning;
  sessions_.Find(1)->worker = 2;
  const std::optional<Upgrade::Answer> answer = upgrade_.Finish(sessions_);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->peers, std::vector<std::string>{"peer"});
  EXPECT_EQ(answer->moved, 1u);
  EXPECT_EQ(answer->kept, 1u);
  EXPECT_FALSE(upgrade_.running());
}

TEST_F(UpgradeTest, ASessionThatIsLostOrGoneIsNotWaitedFor) {
  AddRunning(&sessions_, 3, 0, 1);
  EXPECT_EQ(upgrade_.Release(sessions_).size(), 2u);
  sessions_.Remove(1);
  EXPECT_FALSE(upgrade_.Finish(sessions_).has_value());
  sessions_.Find(3)->phase = Phase::kLost;
  EXPECT_TRUE(upgrade_.Finish(sessions_).has_value());
}

TEST_F(UpgradeTest, ASessionThatCouldNotBeAskedIsNotWaitedFor) {
  (void)upgrade_.Release(sessions_);
  upgrade_.Except(1);
  const std::optional<Upgrade::Answer> answer = upgrade_.Finish(sessions_);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->moved, 0u);
}

TEST_F(UpgradeTest, IsNotAnsweredBeforeTheNewWorkerIsThere) {
  sessions_.Remove(1);
  EXPECT_FALSE(upgrade_.Finish(sessions_).has_value());
}

TEST_F(UpgradeTest, HoldsOnlyWorkersThatWouldStay) {
  children_.Transition(1, WorkerState::kLeaving);
  children_.AddWorker(2);
  children_.AddWorker(3, true, true);
  Upgrade second;
  EXPECT_TRUE(second.held().empty());
  second.Begin("peer", children_.workers());
  EXPECT_EQ(second.from(), (std::set<uint32_t>{1, 2}));
  EXPECT_EQ(second.held(), std::set<uint32_t>{2});
  (void)second.Release(sessions_);
  EXPECT_TRUE(second.held().empty());
}

TEST_F(UpgradeTest, AllPeersHearThatItFailed) {
  upgrade_.Join("second");
  EXPECT_EQ(upgrade_.Fail().peers.size(), 2u);
  EXPECT_FALSE(upgrade_.running());
}

}  // namespace
}  // namespace control
