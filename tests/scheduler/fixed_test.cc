// Jobs whose memory never leaves the device, beside others whose memory can.
#include <gtest/gtest.h>

#include <vector>

#include "scheduler/scheduler.h"
#include "tests/scheduler/actions.h"
#include "tests/scheduler/state_test.h"

namespace scheduler {
namespace {

SessionArrived FixedJob(SessionId id) {
  SessionArrived about = Job(id);
  about.fixed = true;
  return about;
}

class FixedTest : public StateTest {
 protected:
  FixedTest() : StateTest("fair") {
    now_us_ = 10'000'000;
    On(CapacityChanged{0, 100});
  }
};

TEST_F(FixedTest, WhatIsFixedStaysAndWhoeverWaitsForItWaits) {
  On(FixedJob(1));
  On(MemoryNeeded{1, 60});
  On(Job(2));
  const std::vector<Action> waits = On(MemoryNeeded{2, 50});
  EXPECT_TRUE(Of<SwapOut>(waits).empty() && Of<RefuseMemory>(waits).empty());
  EXPECT_TRUE(Of<SwapOut>(On(Paused{1, true})).empty());
  EXPECT_EQ(Of<GrantMemory>(On(SessionLeft{1})).size(), 1u);
}

TEST_F(FixedTest, WhoCanGoGivesWayToWhatIsFixedAndWaitsToo) {
  On(Job(1));
  On(FixedJob(2));
  On(MemoryNeeded{1, 45});
  On(MemoryNeeded{2, 45});
  On(MemoryNeeded{1, 20});
  const std::vector<SwapOut> gone = Of<SwapOut>(On(MemoryNeeded{2, 20}));
  EXPECT_TRUE(gone.size() == 1 && gone[0].session == 1);
  EXPECT_EQ(Of<GrantMemory>(On(Swapped{1, true, true, ""})).size(), 1u);
}

TEST_F(FixedTest, OfTwoThatAreFixedAndWaitForEachOtherTheYoungerIsRefused) {
  On(FixedJob(1));
  On(FixedJob(2));
  On(MemoryNeeded{1, 45});
  On(MemoryNeeded{2, 45});
  On(MemoryNeeded{1, 20});
  const std::vector<RefuseMemory> refused = Of<RefuseMemory>(On(MemoryNeeded{2, 20}));
  EXPECT_TRUE(refused.size() == 1 && refused[0].session == 2);
}

}  // namespace
}  // namespace scheduler
