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
  GangsTest() : StateTest("fair") {
    On(CapacityChanged{0, 100});
    On(CapacityChanged{1, 100});
  }

  // A rank of job 9. The first lies on device 0, the others on device 1.
  static SessionArrived Rank(SessionId id, uint32_t size = 2) {
    SessionArrived rank = Job(id);
    rank.gang_size = size;
    rank.job = 9;
    rank.device = id == 1 ? 0 : 1;
    return rank;
  }
};

TEST_F(GangsTest, RanksOfAGangAreGrantedInOneStep) {
  On(Rank(1));
  EXPECT_EQ(Of<Grant>(On(Runnable{1})).size(), 0u);
  On(Rank(2));
  const std::vector<Grant> grants = Of<Grant>(On(Runnable{2}));
  ASSERT_EQ(grants.size(), 2u);
  const std::vector<Revoke> revokes = Of<Revoke>(On(Paused{1}));
  ASSERT_EQ(revokes.size(), 2u);  // and revoked in one
}

TEST_F(GangsTest, ARankGoesOnWhenItsMateHasEnded) {
  On(Rank(1));
  On(Rank(2));
  EXPECT_EQ(Of<Grant>(On(Runnable{1})).size(), 0u) << "its mate has no work yet";
  EXPECT_EQ(Of<Grant>(On(SessionLeft{2})).size(), 1u) << "and will have none";
}

TEST_F(GangsTest, ARankThatComesInThePlaceOfAnEndedOneIsWaitedFor) {
  On(Rank(1));
  On(Rank(2));
  On(SessionLeft{2});
  On(Rank(3));
  EXPECT_EQ(Of<Grant>(On(Runnable{1})).size(), 0u);
  EXPECT_EQ(Of<Grant>(On(Runnable{3})).size(), 2u);
}

// A rank that ends before all have come was not the last of its job.
TEST_F(GangsTest, ARankThatEndsEarlyIsWaitedFor) {
  On(Rank(1, 3));
  On(Rank(2, 3));
  On(SessionLeft{2});
  EXPECT_EQ(Of<Grant>(On(Runnable{1})).size(), 0u);
}

}  // namespace
}  // namespace scheduler
