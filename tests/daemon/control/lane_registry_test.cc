#include "daemon/control/lane_registry.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/daemon/control/testing.h"

namespace control {
namespace {

namespace wire = ipc::control;

class LaneRegistryTest : public ::testing::Test {
 protected:
  void SetUp() override { scheduler_.Serve(); }

  std::vector<uint64_t> Released() const {
    std::vector<uint64_t> lanes;
    for (const wire::ReleaseOwner& release : children_.ToldKeeper<wire::ReleaseOwner>()) {
      if (release.owner.kind == wire::OwnerKind::kLane) lanes.push_back(release.owner.id);
    }
    return lanes;
  }
  size_t Orders(uint32_t worker) const { return children_.SentTo<wire::ResizeLane>(worker).size(); }
  // The scheduler has a lane, that of session 1.
  uint64_t MakeLane() {
    scheduler_.Apply(scheduler::SessionArrived{.session = 1});
    return scheduler_.state().lanes.begin()->first;
  }

  common::EventLoop loop_;
  FakeChildren children_;
  SessionTable sessions_;
  NoExecutor executor_;
  SchedulerPort scheduler_{"fifo", FewSessions(), &loop_, &executor_, [] { return 1; }};
  LaneRegistry registry_{{&sessions_, &scheduler_, &children_}};
};

TEST_F(LaneRegistryTest, WorkersHearOnceThatTheyShareALane) {
  children_.AddWorker(1);
  children_.AddWorker(2);
  AddRunning(&sessions_, 1, 7, 1);
  registry_.TellShared();
  EXPECT_EQ(children_.SentTo<wire::LanePolicy>(1).size(), 0u);
  AddRunning(&sessions_, 2, 7, 2);
  registry_.TellShared();
  registry_.TellShared();
  ASSERT_EQ(children_.SentTo<wire::LanePolicy>(1).size(), 1u);
  EXPECT_EQ(children_.SentTo<wire::LanePolicy>(1)[0].self_service, 0u);
  EXPECT_EQ(children_.SentTo<wire::LanePolicy>(2).size(), 1u);
  children_.Forget();
  sessions_.Remove(2);
  registry_.TellShared();
  ASSERT_EQ(children_.SentTo<wire::LanePolicy>(1).size(), 1u);
  EXPECT_EQ(children_.SentTo<wire::LanePolicy>(1)[0].self_service, 1u);
}

// A worker keeps the policy of a shared lane also while no session of the worker is in the lane.
TEST_F(LaneRegistryTest, AWorkerThatComesBackAloneHearsThatItSharesTheLaneNoMore) {
  children_.AddWorker(1);
  children_.AddWorker(2);
  const uint64_t lane = MakeLane();
  AddRunning(&sessions_, 1, lane, 1);
  AddRunning(&sessions_, 2, lane, 2);
  registry_.TellShared();
  sessions_.Remove(1);
  sessions_.Remove(2);
  registry_.TellShared();
  children_.Forget();
  AddRunning(&sessions_, 3, lane, 1);
  registry_.TellShared();
  ASSERT_EQ(children_.SentTo<wire::LanePolicy>(1).size(), 1u);
  EXPECT_EQ(children_.SentTo<wire::LanePolicy>(1)[0].self_service, 1u);
}

// Without a daemon a worker opens a lane that it does not share.
TEST_F(LaneRegistryTest, ASessionThatComesOrEndsSharesItsLane) {
  children_.AddWorker(1);
  children_.AddWorker(2);
  AddRunning(&sessions_, 1, 7, 1);
  Session* const other = AddRunning(&sessions_, 2, 7, 2);
  for (const Phase phase : {Phase::kAttaching, Phase::kRunning, Phase::kEnding, Phase::kEntering}) {
    other->phase = phase;
    registry_.TellShared();
    EXPECT_EQ(children_.SentTo<wire::LanePolicy>(1).size(), 1u) << "told at first, and not undone";
  }
  other->phase = Phase::kLost;
  registry_.TellShared();
  ASSERT_EQ(children_.SentTo<wire::LanePolicy>(1).size(), 2u);
  EXPECT_EQ(children_.SentTo<wire::LanePolicy>(1)[1].self_service, 1u);
}

TEST_F(LaneRegistryTest, ALaneOfNoSessionIsFreedWhenWorkersHaveGivenItUp) {
  children_.AddWorker(1);
  children_.AddUsage({{wire::OwnerKind::kLane, 9}, 4096, 0, 0});
  registry_.ReleaseUnknownOwners();
  ASSERT_EQ(Orders(1), 1u);
  EXPECT_EQ(children_.SentTo<wire::ResizeLane>(1)[0].lane, 9u);
  EXPECT_TRUE(Released().empty());
  registry_.OnShrunk(1, {9, 0});
  EXPECT_EQ(Released(), std::vector<uint64_t>{9});
}

// Sessions gave parts back, and the lanewayd that they told has ended. One may still be inside.
TEST_F(LaneRegistryTest, ALaneCountsWithAllThatTheKeeperHasOfIt) {
  children_.AddWorker(1);
  const scheduler::LaneId lane = static_cast<scheduler::LaneId>(MakeLane());
  children_.AddUsage({{wire::OwnerKind::kLane, lane}, 1 << 21, 0, 0});
  registry_.ReleaseUnknownOwners();
  EXPECT_EQ(Orders(1), 0u) << "it shrinks when the memory is needed";
  EXPECT_EQ(scheduler_.state().lanes.at(lane).bytes, 1 << 21);
}

// While no lanewayd was there, a session took a lane of its own, and is inside until it comes to a
// boundary.
TEST_F(LaneRegistryTest, AnOwnLaneCountsBesideTheLaneOfItsSession) {
  const scheduler::LaneId lane = static_cast<scheduler::LaneId>(MakeLane());
  AddRunning(&sessions_, 1, lane);
  children_.AddUsage({{wire::OwnerKind::kLane, lane}, 1 << 21, 0, 0});
  children_.AddUsage({{wire::OwnerKind::kLane, wire::OwnLaneOf(1)}, 1 << 22, 0, 0});
  children_.AddUsage({{wire::OwnerKind::kSession, 1}, 1 << 23, 0, 0});
  registry_.ReleaseUnknownOwners();
  EXPECT_EQ(scheduler_.state().lanes.at(lane).bytes, (1 << 21) + (1 << 22));
  EXPECT_TRUE(Released().empty());
}

TEST_F(LaneRegistryTest, AProgramWithItsOwnContextSharesNoLane) {
  children_.AddWorker(1);
  AddRunning(&sessions_, 1, 7, 1);
  AddRunning(&sessions_, 2, 7, 0);
  registry_.TellShared();
  EXPECT_EQ(children_.SentTo<wire::LanePolicy>(1).size(), 0u);
}

TEST_F(LaneRegistryTest, AWorkerHearsOfSuccessorsUpToTheFirstThatIsNotItsOwn) {
  children_.AddWorker(1);
  children_.AddWorker(2);
  AddRunning(&sessions_, 1, 7, 1);
  AddRunning(&sessions_, 2, 7, 1);
  AddRunning(&sessions_, 3, 7, 2);
  registry_.Publish({7, {2, 3, 1}});
  ASSERT_EQ(children_.SentTo<wire::Successors>(1).size(), 1u);
  EXPECT_EQ(children_.SentTo<wire::Successors>(1)[0].count, 1u);
  EXPECT_EQ(children_.SentTo<wire::Successors>(1)[0].session_ids[0], 2u);
  ASSERT_EQ(children_.SentTo<wire::Successors>(2).size(), 1u);
  EXPECT_EQ(children_.SentTo<wire::Successors>(2)[0].count, 0u);
}

TEST_F(LaneRegistryTest, AnEndedLaneIsReleasedByTheLastWorkerThatLetsGoOfIt) {
  children_.AddWorker(1);
  children_.AddWorker(2);
  registry_.Resize({7, 0});  // no session runs there: each worker may have it
  EXPECT_EQ(Orders(1), 1u);
  EXPECT_EQ(Orders(2), 1u);
  registry_.OnShrunk(1, {7, 0});
  EXPECT_TRUE(Released().empty());
  registry_.OnShrunk(2, {7, 0});
  EXPECT_EQ(Released(), std::vector<uint64_t>{7});
}

TEST_F(LaneRegistryTest, OnlyWorkersWithSessionsInTheLaneHearOfItsShrinking) {
  children_.AddWorker(1);
  children_.AddWorker(2);
  AddRunning(&sessions_, 1, 7, 1);
  registry_.Resize({7, 4096});
  EXPECT_EQ(Orders(1), 1u);
  EXPECT_EQ(Orders(2), 0u);
  registry_.OnShrunk(1, {7, 4096});
  EXPECT_TRUE(Released().empty()) << "the lane stays";
}

TEST_F(LaneRegistryTest, AWorkerThatStartsNeedNotAnswer) {
  children_.AddWorker(1);
  children_.AddWorker(2, false);
  registry_.Resize({7, 0});
  EXPECT_EQ(Orders(2), 1u);
  registry_.OnShrunk(1, {7, 0});
  EXPECT_EQ(Released(), std::vector<uint64_t>{7});
}

TEST_F(LaneRegistryTest, WithoutAWorkerALaneThatEndsIsReleasedAtOnce) {
  registry_.Resize({7, 0});
  EXPECT_EQ(Released(), std::vector<uint64_t>{7});
}

TEST_F(LaneRegistryTest, AnOrderWaitsForTheWorkerOfASessionThatMoves) {
  Session* const session = AddRunning(&sessions_, 1, 7, 1);
  session->phase = Phase::kMoving;
  registry_.Resize({7, 4096});
  EXPECT_TRUE(Released().empty());
  children_.AddWorker(2);
  session->phase = Phase::kRunning;
  session->worker = 2;
  registry_.Reconcile();
  EXPECT_EQ(Orders(2), 1u);
}

TEST_F(LaneRegistryTest, TheOrdersOfALostWorkerAreRepeated) {
  children_.AddWorker(1);
  registry_.Resize({7, 0});
  children_.RemoveWorker(1);
  children_.AddWorker(2);
  registry_.OnWorkerLost(1);
  registry_.Reconcile();
  EXPECT_EQ(Orders(2), 1u);
  EXPECT_TRUE(Released().empty());
}

TEST_F(LaneRegistryTest, WhatWasToldIsNotToldAgain) {
  children_.AddWorker(1);
  AddRunning(&sessions_, 1, 7, 1);
  registry_.Reconcile();
  ASSERT_EQ(children_.SentTo<wire::LanePolicy>(1).size(), 1u);
  EXPECT_EQ(children_.SentTo<wire::LanePolicy>(1)[0].contended, 0u);
  registry_.Resize({7, 4096});
  registry_.Reconcile();
  EXPECT_EQ(children_.SentTo<wire::LanePolicy>(1).size(), 1u);
  EXPECT_EQ(Orders(1), 1u);
}

TEST_F(LaneRegistryTest, AnEndedLaneIsReleasedWithItsLastGuest) {
  AddRunning(&sessions_, 3);
  registry_.AddGuest(7, 1);
  registry_.AddGuest(7, 2);
  registry_.OnSessionGone(1);
  EXPECT_TRUE(Released().empty());
  registry_.OnSessionGone(2);
  EXPECT_EQ(Released(), std::vector<uint64_t>{7});
}

TEST_F(LaneRegistryTest, ALaneThatStaysIsReleasedWithTheLastSessionOfAll) {
  const uint64_t lane = MakeLane();
  AddRunning(&sessions_, 3);
  registry_.AddGuest(lane, 1);
  registry_.OnSessionGone(1);
  EXPECT_TRUE(Released().empty());
  sessions_.Remove(3);
  registry_.OnSessionGone(3);
  EXPECT_EQ(Released(), std::vector<uint64_t>{lane});
}

TEST_F(LaneRegistryTest, OnlyALaneThatHasEndedAndIsLeftIsReleased) {
  const uint64_t lane = MakeLane();
  registry_.OnChanged(1, wire::LaneChanged{lane});
  registry_.OnChanged(1, wire::LaneChanged{0});
  AddRunning(&sessions_, 2, lane + 1);
  registry_.OnChanged(1, wire::LaneChanged{lane + 1});
  EXPECT_TRUE(Released().empty());
  registry_.OnChanged(1, wire::LaneChanged{lane + 2});
  EXPECT_EQ(Released(), std::vector<uint64_t>{lane + 2});
}

TEST_F(LaneRegistryTest, ASessionThatIsOutGivesBackItsMemoryAndItsOwnLane) {
  registry_.ReleaseSession(5);
  EXPECT_EQ(children_.ToldKeeper<wire::ReleaseOwner>()[0].owner.id, 5u);
  EXPECT_EQ(Released(), std::vector<uint64_t>{wire::OwnLaneOf(5)});
}

TEST_F(LaneRegistryTest, TheOtherWorkersHearOfAChange) {
  for (const uint32_t worker : {1, 2, 3}) children_.AddWorker(worker);
  registry_.OnChanged(2, wire::LaneChanged{7});
  EXPECT_EQ(children_.SentTo<wire::LaneChanged>(1).size(), 1u);
  EXPECT_EQ(children_.SentTo<wire::LaneChanged>(2).size(), 0u);
  EXPECT_EQ(children_.SentTo<wire::LaneChanged>(3).size(), 1u);
}

// Another worker has yet to report the guest that is inside.
TEST_F(LaneRegistryTest, NoLaneIsFreedWithItsGuestsBeforeAllAreReported) {
  SchedulerPort adopting("fifo", FewSessions(), &loop_, &executor_, [] { return 1; });
  LaneRegistry registry({&sessions_, &adopting, &children_});
  registry.AddGuest(7, 1);
  registry.OnSessionGone(1);
  EXPECT_TRUE(Released().empty());
  adopting.Serve();
  registry.OnSessionGone(2);
  EXPECT_EQ(Released(), std::vector<uint64_t>{7}) << "no guest came any more";
}

}  // namespace
}  // namespace control
