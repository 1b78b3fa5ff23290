#include "daemon/control/worker_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/daemon/control/testing.h"

namespace control {
namespace {

constexpr WorkerState kStates[] = {WorkerState::kStarting, WorkerState::kListing,
                                   WorkerState::kReady, WorkerState::kLeaving,
                                   WorkerState::kRetired};

TEST(WorkerStateTest, TheLegalTransitionsAreThese) {
  using enum WorkerState;
  const std::vector<std::pair<WorkerState, WorkerState>> legal = {
      {kStarting, kReady},   {kStarting, kLeaving}, {kStarting, kRetired}, {kListing, kStarting},
      {kListing, kReady},    {kListing, kRetired},  {kReady, kLeaving},    {kReady, kRetired},
      {kLeaving, kStarting}, {kLeaving, kReady},    {kLeaving, kRetired}};
  for (const WorkerState from : kStates) {
    for (const WorkerState to : kStates) {
      const bool expected =
          std::find(legal.begin(), legal.end(), std::make_pair(from, to)) != legal.end();
      EXPECT_EQ(IsLegal(from, to), expected)
          << static_cast<int>(from) << " -> " << static_cast<int>(to);
    }
  }
}

TEST(WorkerStateTest, AnIllegalTransitionIsABug) {
  Worker worker;
  worker.Transition(WorkerState::kRetired);
  EXPECT_DEATH(worker.Transition(WorkerState::kReady), "IsLegal");
}

TEST(WorkerStateTest, AnAdoptedWorkerThatEndsBeforeItListsItsSessionsHasServed) {
  Worker worker;
  EXPECT_FALSE(LossOf(worker).served);
  worker.state = WorkerState::kListing;
  EXPECT_TRUE(LossOf(worker).served);
  EXPECT_FALSE(LossOf(worker).expected);
  worker.Transition(WorkerState::kRetired);
  EXPECT_TRUE(LossOf(worker).expected);
}

TEST(WorkerStateTest, AWorkerThatStaysIsAsReadyAsItHadCome) {
  FakeChildren children;
  children.AddWorker(1);
  children.AddWorker(2, false);
  for (const uint32_t worker : {1, 2}) {
    children.Transition(worker, WorkerState::kLeaving);
    EXPECT_FALSE(children.workers().at(worker).TakesSessions());
    children.Stay(worker);
  }
  EXPECT_EQ(children.workers().at(1).state, WorkerState::kReady);
  EXPECT_EQ(children.workers().at(2).state, WorkerState::kStarting);
  children.Stay(3);  // it has ended
}

TEST(WorkerStateTest, ARetiredWorkerIsToldToStopAndTakesNoSessions) {
  FakeChildren children;
  children.AddWorker(1);
  children.Retire(1);
  EXPECT_EQ(children.workers().at(1).state, WorkerState::kRetired);
  EXPECT_EQ(children.SentTo<ipc::control::Stop>(1).size(), 1u);
}

}  // namespace
}  // namespace control
