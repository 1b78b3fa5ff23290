// Steps that are replayed as a graph run as they would have run one by one: the same calls, in the
// same order, with the arguments of this time.
#include <random>
#include <vector>

#include "tests/daemon/worker/launch_runs_fixture.h"
#include "tests/harness/seed.h"

namespace worker::runs_test {
namespace {

TEST_F(LaunchRunsTest, ARunIsAGraphFromItsFirstRepeat) {
  for (int time = 0; time < 3; ++time) {
    EXPECT_EQ(Serve(0, Launches(5, 7)), 5u);
    ExpectRan(Launches(5, 7));
  }
  EXPECT_EQ(fake.instantiated, 1u);
  EXPECT_EQ(fake.set, 0u);
  EXPECT_EQ(fake.edges, (Places{{0, 1}, {1, 2}, {2, 3}, {3, 4}}));
}

TEST_F(LaunchRunsTest, AnOrderedRunWaitsForWhatTheOrderNames) {
  for (int time = 0; time < 3; ++time) Serve(0, Launches(5, 7));
  ASSERT_EQ(Order(0, Launches(5, 7), {0, 1, 0, 2, 2, 4}, true), CUDA_SUCCESS);
  fake.ran.clear();
  EXPECT_EQ(Serve(0, Launches(5, 7)), 5u);
  EXPECT_EQ(fake.edges, (Places{{0, 1}, {0, 2}, {2, 4}}));
  EXPECT_EQ(fake.instantiated, 2u);
  ExpectRan(Launches(5, 7));
  ASSERT_EQ(Order(0, Launches(5, 7), {0, 1}, true), CUDA_SUCCESS);
  EXPECT_EQ(Serve(0, Launches(5, 7)), 5u);
  EXPECT_EQ(fake.edges, (Places{{0, 1}}));
}

TEST_F(LaunchRunsTest, WhereAWordOfTheProofDiffersLaunchesFollowEachOther) {
  ASSERT_EQ(Order(0, Launches(5, 7), {0, 1}, true), CUDA_SUCCESS);
  EXPECT_EQ(Serve(0, Launches(5, 7)), 5u);
  fake.ran.clear();
  std::vector<Named> launches = Launches(5, 7);
  launches[3].argument = 99;
  for (int time = 0; time < 3; ++time) {
    Serve(0, launches);
    ExpectRan(launches);
  }
  EXPECT_EQ(fake.edges, (Places{{0, 1}, {1, 2}, {2, 3}, {3, 4}}));
}

TEST_F(LaunchRunsTest, WhatTheProofHasNotReadMayDiffer) {
  ASSERT_EQ(Order(0, Launches(5, 7), {0, 1}, false), CUDA_SUCCESS);
  for (uint32_t argument = 7; argument < 10; ++argument) {
    EXPECT_EQ(Serve(0, Launches(5, argument)), 5u);
    ExpectRan(Launches(5, argument));
  }
  EXPECT_EQ(fake.edges, (Places{{0, 1}}));
  EXPECT_EQ(fake.instantiated, 1u);
}

TEST_F(LaunchRunsTest, OrdersAreForgotten) {
  ASSERT_EQ(Order(0, Launches(5, 7), {0, 1}, false), CUDA_SUCCESS);
  EXPECT_EQ(Serve(0, Launches(5, 7)), 5u);
  orders_.ForgetOrders();
  for (int time = 0; time < 2; ++time) Serve(0, Launches(5, 7));
  EXPECT_EQ(fake.edges, (Places{{0, 1}, {1, 2}, {2, 3}, {3, 4}}));
}

// Launches with 12 bytes of arguments.
std::vector<Named> WithMore(std::vector<Named> launches) {
  for (Named& named : launches) named.bytes_more = 8;
  return launches;
}

TEST_F(LaunchRunsTest, AnOrderedRunHasItsRenames) {
  const std::vector<Named> before = WithMore(Launches(5, 7)), after = WithMore(Launches(5, 70));
  ASSERT_EQ(Order(0, before, {0, 1}, false, {1, 0, 64, 4, 0, 8}), CUDA_SUCCESS);
  for (const std::vector<Named>& launches : {before, before, after, before}) {
    EXPECT_EQ(Serve(0, launches), 5u);
    std::vector<Named> renamed = launches;
    renamed[1].argument = static_cast<uint32_t>(scratch_.address) + 64;
    renamed[4].argument = static_cast<uint32_t>(scratch_.address) + 8;
    ExpectRan(renamed);
  }
  EXPECT_EQ(fake.edges, (Places{{0, 1}}));
  EXPECT_EQ(fake.instantiated, 1u);
}

TEST_F(LaunchRunsTest, OtherArgumentsOfARenamedLaunchAreTheProgramsOwn) {
  const std::vector<Named> launches = WithMore(Launches(5, 7));
  ASSERT_EQ(Order(0, launches, {0, 1}, false, {1, 4, 64}), CUDA_SUCCESS);
  EXPECT_EQ(Serve(0, launches), 5u);
  ExpectRan(launches);
}

TEST_F(LaunchRunsTest, WithoutItsRenamesAnOrderIsNotFollowed) {
  scratch_.address = 0;
  const std::vector<Named> launches = WithMore(Launches(5, 7));
  ASSERT_EQ(Order(0, launches, {0, 1}, false, {1, 0, 64}), CUDA_SUCCESS);
  for (int time = 0; time < 5; ++time) {
    EXPECT_EQ(Serve(0, launches), 5u);
    ExpectRan(launches);
  }
  EXPECT_EQ(fake.edges, (Places{{0, 1}, {1, 2}, {2, 3}, {3, 4}}));
}

TEST_F(LaunchRunsTest, ARenameBeyondTheParametersIsNotFollowed) {
  const std::vector<Named> launches = WithMore(Launches(5, 7));
  for (const uint32_t offset : {5u, 12u, ~0u}) {
    ASSERT_EQ(Order(0, launches, {0, 1}, false, {1, offset, 64}), CUDA_SUCCESS);
    EXPECT_EQ(Serve(0, launches), 5u);
    EXPECT_EQ(fake.edges, (Places{{0, 1}, {1, 2}, {2, 3}, {3, 4}})) << offset;
    ExpectRan(launches);
  }
  ASSERT_EQ(Order(0, Launches(5, 7), {0, 1}, false, {1, 0, 64}), CUDA_SUCCESS);
  EXPECT_EQ(Serve(0, Launches(5, 7)), 5u);
  ExpectRan(Launches(5, 7));
}

// An order that does not rename asks for no scratch memory.
TEST_F(LaunchRunsTest, ScratchMemoryIsForRenamesAlone) {
  ASSERT_EQ(Order(0, Launches(5, 7), {0, 1}, false), CUDA_SUCCESS);
  EXPECT_EQ(Serve(0, Launches(5, 7)), 5u);
  EXPECT_EQ(scratch_.taken, 0);
}

TEST_F(LaunchRunsTest, AnOrderOverTwoStreamsIsNotFollowed) {
  session_.are_ordered = true;
  std::vector<Named> launches = Launches(5, 7);
  for (size_t i = 3; i < 5; ++i) launches[i].stream = 2;
  ASSERT_EQ(Order(0, launches, {0, 1}, true), CUDA_SUCCESS);
  for (int time = 0; time < 6; ++time) {
    Serve(0, launches);
    ExpectRan(launches);
  }
  EXPECT_EQ(fake.edges, (Places{{0, 1}, {1, 2}})) << "of the first stream's graph";
}

TEST_F(LaunchRunsTest, OnlyLaunchesThatDifferAreSet) {
  for (int time = 0; time < 2; ++time) Serve(0, Launches(5, 7));
  fake.ran.clear();
  std::vector<Named> launches = Launches(5, 7);
  launches[3].argument = 99;
  launches[4].function = 9;
  EXPECT_EQ(Serve(0, launches), 5u);
  ExpectRan(launches);
  EXPECT_EQ(fake.set, 2u);
}

TEST_F(LaunchRunsTest, NamesThatStandForOtherObjectsAreLookedUp) {
  for (int time = 0; time < 2; ++time) Serve(0, Launches(5, 7));
  fake.ran.clear();
  session_.functions = session_.streams = 500;
  ++session_.version;
  EXPECT_EQ(Serve(0, Launches(5, 7)), 5u);
  ExpectRan(Launches(5, 7));
  EXPECT_EQ(fake.instantiated, 1u);
}

// Only the order of a stream's own steps is the program's.
TEST_F(LaunchRunsTest, StreamsThatTakeTurnsHaveAGraphEach) {
  std::vector<Named> launches = Launches(9, 7);
  for (size_t i = 0; i < 9; ++i) launches[i].stream = 1 + i % 3;
  for (uint32_t time = 0; time < 3; ++time) {
    launches[4].argument = 100 + time;
    EXPECT_EQ(Serve(0, launches), 9u);
    ExpectRanByStream(launches);
  }
  EXPECT_EQ(fake.instantiated, 3u);
  EXPECT_EQ(fake.set, 2u);
  session_.streams = 500;
  ++session_.version;
  for (int time = 0; time < 3; ++time) Serve(0, launches);
  EXPECT_EQ(fake.instantiated, 6u) << "other streams may be ordered otherwise";
}

TEST_F(LaunchRunsTest, StreamsWithFewStepsEachLeaveTheFirstItsGraph) {
  std::vector<Named> launches = Launches(6, 7);
  launches[4].stream = 2;
  launches[5].stream = 3;
  for (int time = 0; time < 3; ++time) {
    EXPECT_EQ(Serve(0, launches), 4u);
    ExpectRan(launches);
  }
}

TEST_F(LaunchRunsTest, ARunEndsWhereAnOrderedStreamComes) {
  session_.are_ordered = true;
  std::vector<Named> launches = Launches(8, 7);
  for (size_t i = 4; i < 8; ++i) launches[i].stream = 2;
  for (int time = 0; time < 3; ++time) Serve(0, launches);
  fake.ran.clear();
  EXPECT_EQ(Serve(0, launches), 8u);
  ExpectRan(launches);
  launches[6].stream = 1;  // no more in order with the one before
  for (int time = 0; time < 6; ++time) {
    Serve(0, launches);
    ExpectRan(launches);
  }
}

TEST_F(LaunchRunsTest, FewLaunchesAreServedOneByOne) {
  for (int time = 0; time < 6; ++time) EXPECT_EQ(Serve(0, Launches(2, 7)), 0u);
}

TEST_F(LaunchRunsTest, WhatTheDriverRefusesIsServedOneByOne) {
  fake.add = CUDA_ERROR_NOT_SUPPORTED;
  for (int time = 0; time < 6; ++time) {
    EXPECT_EQ(Serve(0, Launches(5, 7)), 0u);
    ExpectRan(Launches(5, 7));
  }
  fake.add = CUDA_SUCCESS;
  for (int time = 0; time < 3; ++time) Serve(100, Launches(5, 7));
  fake.ran.clear();
  fake.change = CUDA_ERROR_INVALID_VALUE;
  EXPECT_EQ(Serve(100, Launches(5, 8)), 0u);
  ExpectRan(Launches(5, 8));
}

TEST_F(LaunchRunsTest, WithoutItsStreamARunIsServedOneByOne) {
  for (int time = 0; time < 3; ++time) Serve(0, Launches(5, 7));
  fake.ran.clear();
  session_.has_streams = false;
  EXPECT_EQ(Serve(0, Launches(5, 7)), 0u);
  ExpectRan(Launches(5, 7));
}

TEST_F(LaunchRunsTest, AGraphThatFailsToLaunchIsTold) {
  for (int time = 0; time < 3; ++time) Serve(0, Launches(5, 7));
  fake.launch = CUDA_ERROR_LAUNCH_FAILED;
  std::vector<std::byte> messages;
  for (const Named& named : Launches(5, 7)) AppendStep(named, &messages);
  const LaunchRuns::Replayed done = runs_.TryUntrusted(0, messages, nullptr);
  EXPECT_EQ(done.launches, 5u);
  EXPECT_EQ(done.result, CUDA_ERROR_LAUNCH_FAILED);
}

TEST_F(LaunchRunsTest, AllGraphsGo) {
  for (uint32_t place = 0; place < 5; ++place) {
    for (int time = 0; time < 3; ++time) Serve(place * 1000, Launches(5, 7));
  }
  EXPECT_FALSE(fake.alive.empty());
  runs_.Clear();
  EXPECT_TRUE(fake.alive.empty());
}

// --- fills and copies ----------------------------------------------------------------------------

TEST_F(LaunchRunsTest, FillsAndCopiesAreNodesOfTheGraph) {
  for (int time = 0; time < 3; ++time) {
    EXPECT_EQ(Serve(0, Mixed(6, 7)), 4u) << "only launches count as launches";
    ExpectRan(Mixed(6, 7));
  }
  EXPECT_EQ(fake.instantiated, 1u);
  EXPECT_EQ(fake.edges, (Places{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}}));
}

TEST_F(LaunchRunsTest, ALaunchBetweenFillsMayDiffer) {
  Serve(0, Mixed(6, 7));
  fake.ran.clear();
  std::vector<Named> steps = Mixed(6, 7);
  steps[2].argument = 99;
  EXPECT_EQ(Serve(0, steps), 4u);
  ExpectRan(steps);
  EXPECT_EQ(fake.set, 1u);
}

TEST_F(LaunchRunsTest, BeforeAFillThatDiffersRunsEnd) {
  std::vector<Named> steps = Launches(9, 7);
  steps[4] = {0, 1, 0, 0, ipc::Op::cuMemsetD32Async};
  for (uint32_t value = 0; value < 8; ++value) {
    steps[4].argument = value;
    const uint32_t replayed = Serve(0, steps);
    ExpectRan(steps);
    EXPECT_EQ(replayed, value == 1 ? 0u : 8u) << value;
  }
}

TEST_F(LaunchRunsTest, BeforeAnOrderRunsEnd) {
  const std::vector<Named> steps = Mixed(9, 7);
  for (int time = 0; time < 2; ++time) Serve(0, steps);
  const uint32_t place =
      4 * static_cast<uint32_t>(ipc::PaddedBytes(sizeof(ipc::MessageHeader) + sizeof(Named)));
  ASSERT_EQ(Order(place, {steps.begin() + 4, steps.end()}, {0, 1}, true), CUDA_SUCCESS);
  fake.ran.clear();
  EXPECT_EQ(Serve(0, steps), 7u);
  ExpectRan(steps);
  EXPECT_EQ(fake.edges, (Places{{0, 1}}));
}

TEST_F(LaunchRunsTest, OverMemoryThatIsGoneStepsAreServedOneByOne) {
  Serve(0, Mixed(6, 7));
  fake.ran.clear();
  session_.is_backed = false;
  EXPECT_EQ(Serve(0, Mixed(6, 7)), 0u);
  ExpectRan(Mixed(6, 7));
}

TEST_F(LaunchRunsTest, WhateverComesRunsOnceInOrder) {
  std::mt19937_64 random(harness::Seed());
  const auto below = [&](uint32_t bound) { return static_cast<uint32_t>(random() % bound); };
  std::vector<std::vector<Named>> chunks(20);
  uint64_t replayed = 0, served = 0;
  constexpr uint32_t kSteps = 20'000;
  for (uint32_t step = 0; step < kSteps; ++step) {
    session_.are_ordered = step < kSteps / 2;
    std::vector<Named>& chunk = chunks[below(20)];
    if (chunk.empty() || below(100) == 0) chunk = Launches(1 + below(30), below(1000));
    for (uint32_t changes = below(4); changes != 0; --changes) {
      Named& named = chunk[below(static_cast<uint32_t>(chunk.size()))];
      const uint32_t what = below(40);
      if (what < 30) named.argument = below(1000);
      if (what == 30) named.function = below(5);
      if (what == 31) named.stream = 1 + below(2);
      if (what == 32) named.bytes_more = 4 * below(8);
      if (what == 33) named.op = below(2) == 0 ? ipc::Op::CopyDevice : ipc::Op::cuMemsetD32Async;
      if (what == 34) named.op = ipc::Op::Launch;
    }
    if (below(200) == 0) session_.functions = below(100), ++session_.version;
    if (below(200) == 0) session_.streams = below(100), ++session_.version;
    session_.is_backed = below(300) != 0;
    fake.change = below(300) == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    served += chunk.size();
    replayed += Serve(static_cast<uint32_t>(&chunk - chunks.data()) << 16, chunk);
    if (step < kSteps / 2) {
      ASSERT_NO_FATAL_FAILURE(ExpectRan(chunk));
    } else {
      ASSERT_NO_FATAL_FAILURE(ExpectRanByStream(chunk));
    }
    if (below(250) == 0) runs_.Clear();
  }
  EXPECT_GT(replayed, served / 8);
}

}  // namespace
}  // namespace worker::runs_test
