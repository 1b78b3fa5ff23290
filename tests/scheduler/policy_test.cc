// What each policy promises, measured in a closed loop (machine.h). And the sentences of why.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "scheduler/scheduler.h"
#include "scheduler/why.h"
#include "tests/scheduler/machine.h"

namespace scheduler {
namespace {

TEST(FifoTest, FinishesInTheOrderOfArrival) {
  Machine machine("fifo");
  for (SessionId id = 1; id <= 6; ++id) machine.Add(Job(id, 10 + (id * 7) % 5), 3'000);
  machine.Run(kUnlimited / 2);
  EXPECT_EQ(machine.finished(), (std::vector<SessionId>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(machine.order(), machine.finished());  // nobody was interrupted
}

TEST(SrtfTest, TheShortestRemainingGoesFirstEvenIfItComesLate) {
  Machine machine("srtf");
  SessionArrived longest = Job(1, 1'000);
  longest.estimate.iteration_us = 5'000;
  machine.Add(longest, 5'000);
  machine.Run(50'000);
  SessionArrived shorter = Job(2, 20);
  shorter.estimate.iteration_us = 5'000;
  SessionArrived shortest = Job(3, 10);
  shortest.estimate.iteration_us = 5'000;
  machine.Add(shorter, 5'000);
  machine.Add(shortest, 5'000);
  machine.Run(kUnlimited / 2);
  EXPECT_EQ(machine.finished(), (std::vector<SessionId>{3, 2, 1}));
}

TEST(SrtfTest, HistoryCountsWhereNothingIsDeclared) {
  Machine machine("srtf");
  for (SessionId id = 1; id <= 3; ++id) {
    SessionArrived about = Job(id);
    about.estimate.total_us = 1'000'000 * static_cast<int64_t>(4 - id);
    machine.Add(about, 5'000);
  }
  machine.Run(900'000);
  EXPECT_GT(machine.busy_us(3), 800'000);
}

TEST(SrtfTest, WithoutKnowledgeTheLeastServedGoesFirst) {
  Machine machine("srtf");
  machine.Add(Job(1), 5'000);
  machine.Run(500'000);
  machine.Add(Job(2), 5'000);
  machine.Run(900'000);
  EXPECT_GT(machine.busy_us(2), 350'000);  // until it has had as much
}

// Between two sessions of a lane: a slice, what the one runs beyond its boundary, and what the next
// runs beyond its own.
TEST(FairTest, TheErrorStaysBelowASliceAndTwoIterations) {
  Machine machine("fair");
  const int64_t lengths[] = {1'000, 3'000, 7'000, 11'000, 2'500};
  for (SessionId id = 1; id <= 5; ++id) machine.Add(Job(id), lengths[id - 1]);
  for (int64_t until = 1'000'000; until <= 20'000'000; until += 333'000) {
    machine.Run(until);
    int64_t least = kUnlimited;
    int64_t most = 0;
    for (SessionId id = 1; id <= 5; ++id) {
      least = std::min(least, machine.busy_us(id));
      most = std::max(most, machine.busy_us(id));
    }
    ASSERT_LE(most - least, 10'000 + 2 * 11'000) << "after " << until << " us";
  }
}

TEST(FairTest, ANewcomerDoesNotCatchUpOnThePast) {
  Machine machine("fair");
  machine.Add(Job(1), 1'000);
  machine.Run(5'000'000);
  machine.Add(Job(2), 1'000);
  const int64_t before = machine.busy_us(1);
  machine.Run(6'000'000);
  EXPECT_NEAR(static_cast<double>(machine.busy_us(1) - before), 500'000, 25'000);
}

TEST(FairTest, WeightsCount) {
  Machine machine("fair");
  SessionArrived heavy = Job(1);
  heavy.weight = 300;
  machine.Add(heavy, 1'000);
  machine.Add(Job(2), 1'000);
  machine.Run(10'000'000);
  EXPECT_NEAR(static_cast<double>(machine.busy_us(1)) / static_cast<double>(machine.busy_us(2)), 3,
              0.1);
}

TEST(RoundRobinTest, EverybodyInTurn) {
  Machine machine("rr");
  for (SessionId id = 1; id <= 4; ++id) machine.Add(Job(id), 2'000);
  machine.Run(400'000);
  for (size_t i = 4; i < machine.order().size(); ++i) {
    EXPECT_NE(machine.order()[i], machine.order()[i - 1]);
  }
  EXPECT_LE(machine.longest_wait_us(), 3 * (10'000 + 2 * 2'000));
}

TEST(PriorityTest, TheMoreUrgentClassGoesFirstAndTheOtherAges) {
  Machine machine("priority");
  SessionArrived low = Job(1);
  low.priority = 2;
  SessionArrived high = Job(2);
  high.priority = 0;
  machine.Add(low, 5'000);
  machine.Add(high, 5'000);
  machine.Run(10'000'000);
  EXPECT_GT(machine.busy_us(2), 9'000'000);
  EXPECT_GT(machine.busy_us(1), 0);
  EXPECT_LE(machine.longest_wait_us(), 2 * 200'000 + 10'000 + 2 * 5'000);  // two classes' worth
}

TEST(DeadlineTest, TheEarliestDeadlineGoesFirst) {
  Machine machine("edf");
  machine.Add(Job(1), 4'000);
  SessionArrived serving = Job(2);
  serving.deadline_us = 20'000;
  machine.Add(serving, 4'000);
  machine.Run(1'000'000);
  EXPECT_GT(machine.busy_us(2), 600'000);
  EXPECT_GT(machine.busy_us(1), 0);
}

TEST(SharesTest, UsersHaveTimeInProportionToTheirWeights) {
  Machine machine("shares");
  machine.Tell(UserChanged{1, 200});
  machine.Tell(UserChanged{2, 100});
  for (SessionId id = 1; id <= 4; ++id) {
    SessionArrived about = Job(id);
    about.user = id <= 3 ? 1 : 2;
    machine.Add(about, 2'000);
  }
  machine.Run(20'000'000);
  const double first =
      static_cast<double>(machine.busy_us(1) + machine.busy_us(2) + machine.busy_us(3));
  EXPECT_NEAR(first / static_cast<double>(machine.busy_us(4)), 2, 0.1);
  EXPECT_NEAR(static_cast<double>(machine.busy_us(1)) / static_cast<double>(machine.busy_us(2)), 1,
              0.05);
}

// The stated bound: Limits::starvation_us, then everybody who starves before it has one slice, and
// who runs comes to its boundary.
TEST(StarvationTest, NobodyWaitsPastTheBound) {
  for (const std::string policy : {"srtf", "fair", "rr", "priority", "edf", "shares"}) {
    Machine machine(policy);
    for (SessionId id = 1; id <= 10; ++id) {
      SessionArrived about = Job(id, id == 1 ? 1'000'000 : 0);
      about.estimate.iteration_us = id == 1 ? 1 : 0;  // srtf: it is always the shortest
      about.priority = id % 3;
      about.deadline_us = id < 3 ? 1'000 : 0;
      machine.Add(about, 1'000 * static_cast<int64_t>(id));
    }
    machine.Run(30'000'000);
    EXPECT_LE(machine.longest_wait_us(), 1'000'000 + 10 * (10'000 + 2 * 10'000)) << policy;
    for (SessionId id = 1; id <= 10; ++id) EXPECT_GT(machine.busy_us(id), 0) << policy << id;
  }
}

TEST(PolicyChangeTest, ThePolicyChangesWhileJobsRun) {
  Machine machine("fifo");
  for (SessionId id = 1; id <= 3; ++id) machine.Add(Job(id), 2'000);
  machine.Run(1'000'000);
  EXPECT_EQ(machine.busy_us(2) + machine.busy_us(3), 0);
  machine.Tell(PolicyChanged{"rr"});
  machine.Run(2'000'000);
  EXPECT_GT(machine.busy_us(2), 250'000);
  EXPECT_GT(machine.busy_us(3), 250'000);
  machine.Tell(PolicyChanged{"whim"});
  EXPECT_STREQ(machine.state()->policy->name(), "rr");
}

// --- why -----------------------------------------------------------------------------------------

std::string WhyOf(Machine* machine, SessionId id) {
  return Sentence(Why(*machine->state(), id, machine->now_us()));
}

TEST(WhyTest, NamesWhoHoldsTheLaneAndForHowLong) {
  Machine machine("fifo");
  machine.Add(Job(4), 80'000);
  machine.Add(Job(5), 80'000);
  machine.Add(Job(6), 80'000);
  EXPECT_EQ(WhyOf(&machine, 4), "runs in lane 1");
  EXPECT_EQ(WhyOf(&machine, 5), "waits for lane 1, held by job 4 until its iteration ends");
  machine.Run(80'000);
  EXPECT_EQ(WhyOf(&machine, 5),
            "waits for lane 1, held by job 4 until its iteration ends, about 80 ms");
  EXPECT_EQ(WhyOf(&machine, 6),
            "waits for its turn: 1 session is before it; lane 1 is held by job 4 until its "
            "iteration ends, about 80 ms");
}

TEST(WhyTest, NamesMemoryAndWhoHasIt) {
  Machine machine("fifo");
  const int64_t gib = int64_t{1} << 30;
  machine.Tell(CapacityChanged{0, 4 * gib});
  machine.Add(Job(1), 1'000);
  machine.Add(Job(2), 1'000);
  machine.Tell(MemoryNeeded{1, 3 * gib});
  machine.Tell(MemoryNeeded{2, 6 * gib / 5});
  EXPECT_EQ(WhyOf(&machine, 2), "waits for 1.2 GiB of device memory; job 1 holds 3 GiB");
}

TEST(WhyTest, NamesTheRest) {
  Machine machine("fifo");
  machine.state()->limits.sessions_max = 2;
  machine.Add(Job(1), 1'000);
  machine.Tell(Job(2));
  EXPECT_EQ(WhyOf(&machine, 2), "has no work to do");
  machine.Tell(Paused{2});
  EXPECT_EQ(WhyOf(&machine, 2), "is paused");
  machine.Tell(SessionEnding{2});
  EXPECT_EQ(WhyOf(&machine, 2), "is ending");
  machine.Tell(Job(3));
  EXPECT_EQ(WhyOf(&machine, 3), "waits for a place: all 2 are taken");
  EXPECT_EQ(WhyOf(&machine, 99), "is not known");
}

TEST(WhyTest, NamesAUsersQuota) {
  Machine machine("fifo");
  const int64_t mib = int64_t{1} << 20;
  machine.Tell(CapacityChanged{0, 1024 * mib});
  machine.Tell(UserChanged{7, 100, 64 * mib, 2});
  for (const SessionId id : {1, 2, 3}) {
    SessionArrived job = Job(id);
    job.user = 7;
    machine.Add(job, 1'000);
  }
  machine.Tell(MemoryNeeded{1, 40 * mib});
  machine.Tell(MemoryNeeded{2, 30 * mib});
  EXPECT_EQ(WhyOf(&machine, 2),
            "waits for 30 MiB in its user's quota: 40 MiB of 64 MiB are used (--user-memory)");
  EXPECT_EQ(WhyOf(&machine, 3),
            "waits for a place in its user's quota: 2 of 2 sessions run (--user-sessions)");
}

}  // namespace
}  // namespace scheduler
