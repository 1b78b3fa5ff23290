// Gangs: when the ranks of a job are granted together.
#include <gtest/gtest.h>

#include <vector>

#include "scheduler/scheduler.h"
#include "tests/scheduler/actions.h"
#include "tests/scheduler/state_test.h"

namespace scheduler {
namespace {

class GangsTest : public StateTest {
 protected:
  GangsTest() : StateTest("fair") { On(CapacityChanged{0, 100}); }
};

TEST_F(GangsTest, RanksOfAGangAreGrantedInOneStep) {
  On(CapacityChanged{1, 100});
  SessionArrived rank = Job(1);
  rank.gang_size = 2;
  rank.job = 9;
  On(rank);
  EXPECT_EQ(Of<Grant>(On(Runnable{1})).size(), 0u);
  rank.session = 2;
  rank.device = 1;
  On(rank);
  const std::vector<Grant> grants = Of<Grant>(On(Runnable{2}));
  ASSERT_EQ(grants.size(), 2u);
  const std::vector<Revoke> revokes = Of<Revoke>(On(Paused{1}));
  ASSERT_EQ(revokes.size(), 2u);  // and revoked in one
}

TEST_F(GangsTest, ARankGoesOnWhenItsMateHasEnded) {
  On(CapacityChanged{1, 100});
  SessionArrived rank = Job(1);
  rank.gang_size = 2;
  rank.job = 9;
  On(rank);
  rank.session = 2;
  rank.device = 1;
  On(rank);
  EXPECT_EQ(Of<Grant>(On(Runnable{1})).size(), 0u) << "its mate has no work yet";
  EXPECT_EQ(Of<Grant>(On(SessionLeft{2})).size(), 1u) << "and will have none";
}

TEST_F(GangsTest, ARankThatComesInThePlaceOfAnEndedOneIsWaitedFor) {
  On(CapacityChanged{1, 100});
  SessionArrived rank = Job(1);
  rank.gang_size = 2;
  rank.job = 9;
  On(rank);
  rank.session = 2;
  rank.device = 1;
  On(rank);
  On(SessionLeft{2});
  rank.session = 3;
  On(rank);
  EXPECT_EQ(Of<Grant>(On(Runnable{1})).size(), 0u);
  EXPECT_EQ(Of<Grant>(On(Runnable{3})).size(), 2u);
}

// A rank that ends before all have come was not the last of its job.
TEST_F(GangsTest, ARankThatEndsEarlyIsWaitedFor) {
  On(CapacityChanged{1, 100});
  SessionArrived rank = Job(1);
  rank.gang_size = 3;
  rank.job = 9;
  On(rank);
  rank.session = 2;
  rank.device = 1;
  On(rank);
  On(SessionLeft{2});
  EXPECT_EQ(Of<Grant>(On(Runnable{1})).size(), 0u);
}

}  // namespace
}  // namespace scheduler
