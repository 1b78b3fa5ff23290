// Runs that are executed both ways: the bytes of single launches stay, a difference is found and
// named, and what may leave more than bytes is executed once.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "tests/daemon/worker/run_replayer_fixture.h"
#include "tests/harness/seed.h"

namespace worker::replayer_test {
namespace {

TEST_F(RunReplayerTest, AVerifiedRunLeavesWhatSingleLaunchesLeave) {
  Learn(Launches(7));
  for (uint64_t time = 1; time <= 3; ++time) {
    EXPECT_EQ(Serve(Launches(7), true), 7u);
    EXPECT_EQ(session_.in_graphs, 7 * time);
    EXPECT_EQ(session_.single, 7 * time);
    EXPECT_EQ(verified(), 7 * time);
    ASSERT_NO_FATAL_FAILURE(ExpectBytes());
  }
  EXPECT_EQ(mismatches(), 0u);
}

TEST_F(RunReplayerTest, OnlyWhatTheClientWantsIsVerified) {
  Learn(Launches(7));
  EXPECT_EQ(Serve(Launches(7), false), 7u);
  EXPECT_EQ(session_.single, 0u);
  EXPECT_EQ(verified(), 0u);
  ExpectBytes();
}

// The launch in the middle is renamed: in the graph it writes there, and alone nothing that stays.
TEST_F(RunReplayerTest, ScratchMemoryIsNotCompared) {
  std::vector<Named> launches = Launches(7);
  launches[3].function = kTemporary;
  std::vector<std::byte> messages;
  for (Named& named : launches) {
    named.bytes_more = 4;
    AppendStep(named, &messages);
  }
  std::memcpy(area_.data(), messages.data(), messages.size());
  const std::vector<uint32_t> edges = {0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6}, renames = {3, 0, 9};
  const std::vector<uint32_t> read((messages.size() / 4 + 31) / 32, ~0u);
  ASSERT_EQ(replayer_->orders()->OrderRenamedLaunches(
                0, static_cast<unsigned>(messages.size()), edges.data(), 12, read.data(),
                static_cast<unsigned>(read.size()), nullptr, 0, renames.data(), 3, 512),
            CUDA_SUCCESS);
  for (uint8_t time = 1; time <= 3; ++time) {
    EXPECT_EQ(Serve(launches, true), 7u);
    EXPECT_EQ(recording_.At(kScratch + 9), time);
    ASSERT_NO_FATAL_FAILURE(ExpectBytes());
  }
  EXPECT_EQ(verified(), 3 * 7u);
  EXPECT_EQ(mismatches(), 0u);
}

// A run becomes a graph when it is replayed first.
TEST_F(RunReplayerTest, TheFirstReplayOfARunIsVerified) {
  EXPECT_EQ(Serve(Launches(7), true), 7u);
  EXPECT_EQ(session_.single, 7u);
  EXPECT_EQ(verified(), 7u);
  ExpectBytes();
}

TEST_F(RunReplayerTest, ALaunchAloneIsExecutedOnce) {
  EXPECT_EQ(Serve(Launches(1), true), 0u);
  EXPECT_EQ(session_.single, 1u);
  EXPECT_EQ(verified(), 0u);
  ExpectBytes();
}

TEST_F(RunReplayerTest, ADifferenceEndsTheReplayOfItsRunAlone) {
  std::vector<Named> launches = Launches(7);
  launches[4].function = kStrange;
  Learn(Launches(7), 1 << 16);
  Learn(launches);
  expected_ = {};  // the graph has left other bytes while nothing was verified
  for (uint32_t i = 0; i < kBytes; ++i) recording_.At(kMemory + i) = 0;
  EXPECT_EQ(Serve(launches, true), 7u);
  EXPECT_EQ(mismatches(), 1u);
  ASSERT_NO_FATAL_FAILURE(ExpectBytes());
  for (int time = 0; time < 5; ++time) {
    EXPECT_EQ(Serve(launches, true), 0u);
    ASSERT_NO_FATAL_FAILURE(ExpectBytes());
  }
  EXPECT_EQ(Serve(Launches(7), false, 1 << 16), 7u);
  EXPECT_EQ(mismatches(), 1u);
  ExpectBytes();
}

// The first byte that differs has two writers; the second of them is told.
TEST_F(RunReplayerTest, TheLastWriterOfTheFirstDifferenceIsNamed) {
  const std::vector<Named> launches = {
      {0, 1, 3, 0}, {kStrange + 2, 1, 5, 0}, {1, 1, 5, 0}, {kStrange + 3, 1, 9, 0}, {2, 1, 1, 0}};
  Learn(launches);
  EXPECT_EQ(Serve(launches, true), 5u);
  EXPECT_STREQ(page_->replay.mismatch, "scale");
  EXPECT_EQ(verified(), 5u);
}

TEST_F(RunReplayerTest, WhatMayLeaveMoreThanBytesIsExecutedOnce) {
  session_.leaves_bytes_alone = false;
  ExpectUnverified(Launches(5));
}

TEST_F(RunReplayerTest, ASessionOnTwoDevicesIsNotVerified) {
  Open(2);
  ExpectUnverified(Launches(5));
}

TEST_F(RunReplayerTest, MoreMemoryThanTheLimitIsNotVerified) {
  ASSERT_EQ(held_->arena.Map(0, kMemory + 2 * MiB, ipc::limits::kVerifyBytesMax), CUDA_SUCCESS);
  ExpectUnverified(Launches(5));
}

TEST_F(RunReplayerTest, AnArgumentInPinnedMemoryIsNotVerified) {
  Learn(Launches(5));
  std::vector<std::byte> messages;
  for (const Named& named : Launches(5)) AppendStep(named, &messages);
  const size_t third = 2 * messages.size() / 5;
  std::memcpy(messages.data() + third + sizeof(ipc::MessageHeader) + offsetof(Named, argument),
              &kPinned, sizeof kPinned);
  EXPECT_NE(replayer_->TryUntrusted(0, messages, 0, true).bytes, 0u);
  EXPECT_EQ(session_.single, 0u);
  EXPECT_EQ(verified(), 0u);
}

class PinnedRunReplayerTest : public RunReplayerTest {
 protected:
  PinnedRunReplayerTest() { EXPECT_EQ(held_->pinned.Map(kPinned, 4096, 0), CUDA_SUCCESS); }
};

TEST_F(PinnedRunReplayerTest, WhatReachesNoPinnedMemoryIsVerified) {
  Learn(Launches(5));
  EXPECT_EQ(Serve(Launches(5), true), 5u);
  EXPECT_EQ(verified(), 5u);
}

// A kernel may find it there.
TEST_F(PinnedRunReplayerTest, AnAddressOfPinnedMemoryInDeviceMemoryIsNotVerified) {
  for (size_t i = 0; i < sizeof kPinned; ++i)
    recording_.At(kMemory + 1024 + i) = static_cast<uint8_t>(kPinned >> (8 * i));
  ExpectUnverified(Launches(5));
}

TEST_F(PinnedRunReplayerTest, AConstantMayHoldAnAddressOfPinnedMemory) {
  held_->addresses.AddVariable(reinterpret_cast<CUmodule>(1), kMemory - 4096, 8);
  ExpectUnverified(Launches(5));
}

// A stream may wait for what the program sends next.
TEST_F(RunReplayerTest, WorkThatDoesNotEndIsNotWaitedForWithoutEnd) {
  recording_.busy_streams.insert(session_.stream);
  ExpectUnverified(Launches(5));
}

TEST_F(RunReplayerTest, ARunThatDoesNotEndStaysAsItIs) {
  session_.hangs_in_graph = true;
  ExpectUnverified(Launches(5));
}

TEST_F(RunReplayerTest, AGraphThatFailsIsTold) {
  Learn(Launches(5));
  graphs_.launch = CUDA_ERROR_LAUNCH_FAILED;
  std::vector<std::byte> messages;
  for (const Named& named : Launches(5)) AppendStep(named, &messages);
  EXPECT_EQ(replayer_->TryUntrusted(0, messages, 0, true).result, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(session_.single, 0u);
  EXPECT_EQ(verified(), 0u);
}

TEST_F(RunReplayerTest, ASingleLaunchThatFailsIsToldAndTheOthersRun) {
  std::vector<Named> launches = Launches(5);
  launches[1].function = kFailing;
  Learn(launches);
  expected_ = {};
  for (uint32_t i = 0; i < kBytes; ++i) recording_.At(kMemory + i) = 0;
  EXPECT_EQ(Serve(launches, true), 5u);
  EXPECT_EQ(last_.result, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  EXPECT_EQ(session_.single, 5u);
  ExpectBytes();
}

TEST_F(RunReplayerTest, AllGraphsGo) {
  Learn(Launches(5));
  EXPECT_FALSE(graphs_.alive.empty());
  replayer_->Clear();
  EXPECT_TRUE(graphs_.alive.empty());
}

// Every run is verified, so no graph's own bytes stay.
TEST_F(RunReplayerTest, WhateverIsVerifiedLeavesTheBytesOfSingleLaunches) {
  std::mt19937_64 random(harness::Seed());
  const auto below = [&](uint32_t bound) { return static_cast<uint32_t>(random() % bound); };
  std::vector<std::vector<Named>> runs(8);
  std::map<const std::vector<Named>*, int> served;
  for (uint32_t step = 0; step < 150; ++step) {
    std::vector<Named>& run = runs[below(8)];
    if (run.empty()) run = Launches(3 + below(20));
    Named& named = run[below(static_cast<uint32_t>(run.size()))];
    if (below(3) == 0) named.argument = below(1000);
    // From the second time on runs are graphs; strange ones are found at their first time as one.
    if (served[&run]++ > 2 && below(6) == 0) named.function = kStrange + below(4);
    const uint32_t place = static_cast<uint32_t>(&run - runs.data()) << 16;
    Serve(run, served[&run] > 2, place);
    ASSERT_NO_FATAL_FAILURE(ExpectBytes()) << "step " << step;
  }
  EXPECT_GT(verified(), 0u);
  EXPECT_GT(mismatches(), 0u);
}

}  // namespace
}  // namespace worker::replayer_test
