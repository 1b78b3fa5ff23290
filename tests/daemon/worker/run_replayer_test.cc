// Runs that are executed both ways: the bytes of single launches stay, a difference is found and
// named, and what may leave more than bytes is executed once.
#include "daemon/worker/run_replayer.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "daemon/worker/backed_addresses.h"
#include "daemon/worker/lanes.h"
#include "ipc/calls/limits.h"
#include "ipc/chunks/chunk_format.h"
#include "ipc/message.h"
#include "tests/daemon/worker/launch_graphs.h"
#include "tests/daemon/worker/recording_driver.h"
#include "tests/harness/seed.h"

namespace worker {
namespace {

using ipc::limits::MiB;

constexpr CUdeviceptr kMemory = ipc::limits::kSlotBase;
constexpr CUdeviceptr kPinned = ipc::limits::kSlotBase + ipc::limits::kDeviceArenaBytes;
constexpr uint32_t kBytes = 16;     // that kernels write
constexpr uint32_t kStrange = 100;  // kernels from here on do something else in a graph
constexpr uint32_t kFailing = 99;   // a kernel whose single launch is refused

constexpr std::array<const char*, 4> kNames = {"copy", "scale", "add", "sum"};

CUresult FuncGetName(const char** name, CUfunction function) {
  *name = kNames[reinterpret_cast<uintptr_t>(function) % kNames.size()];
  return CUDA_SUCCESS;
}

// What a kernel does to the byte that its argument names.
uint8_t After(const Ran& ran, uint8_t before, bool in_graph) {
  const bool strange = in_graph && ran.function >= kStrange;
  return static_cast<uint8_t>(before * 3 + ran.function + ran.argument / kBytes +
                              (strange ? 1 : 0));
}

// The session, over memory of the recording driver. Kernels of a graph and single launches run
// here.
class Session final : public LaunchSource, public LaunchServer {
 public:
  std::optional<Described> DescribeStepUntrusted(std::span<const std::byte> message) override {
    const std::byte* const named = message.data() + sizeof(ipc::MessageHeader);
    const Ran ran = RanOf(message);
    return Described{{.function = reinterpret_cast<CUfunction>(ran.function),
                      .params = named + offsetof(Named, argument),
                      .param_bytes = 4},
                     stream};
  }
  bool AreBacked(TouchedSpans*) override { return true; }
  bool HasStream(CUstream) override { return true; }
  void UseStream(CUstream) override {}
  bool AreOrdered(CUstream, CUstream) override { return false; }
  uint64_t names_version() const override { return 0; }
  CUresult DoStepUntrusted(std::span<const std::byte> message) override {
    ++single;
    const Ran ran = RanOf(message);
    if (ran.function == kFailing) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    Run(ran, false);
    return CUDA_SUCCESS;
  }
  bool LaunchesLeaveBytesAlone() const override { return leaves_bytes_alone; }

  void Run(const Ran& ran, bool in_graph) {
    uint8_t& byte = recording->At(kMemory + ran.argument % kBytes);
    byte = After(ran, byte, in_graph);
    if (in_graph) ++in_graphs;
    if (in_graph && hangs_in_graph) recording->busy_streams.insert(stream);
  }
  static Ran RanOf(std::span<const std::byte> message) {
    Named named;
    std::memcpy(&named, message.data() + sizeof(ipc::MessageHeader), sizeof named);
    return {.function = named.function, .argument = named.argument};
  }

  Recording* recording = nullptr;
  CUstream stream = nullptr;
  uint64_t single = 0, in_graphs = 0;  // kernels that ran
  bool leaves_bytes_alone = true, hangs_in_graph = false;
};

class RunReplayerTest : public testing::Test {
 protected:
  RunReplayerTest() : recording_(FreshRecording()), environment_(RecordingEnvironment()) {
    recording_.capacity_bytes = uint64_t{4} << 30;
    table_ = *environment_.driver;
    AddLaunchGraphs(&table_);
    table_.cuFuncGetName = &FuncGetName;
    environment_.driver = &table_;
    environment_.contexts = {reinterpret_cast<CUcontext>(1)};
    environment_.lanes = &lanes_;
    environment_.backed = &backed_;
    graphs_.run = [this](const Ran& ran) { session_.Run(ran, true); };
    session_.recording = &recording_;
    Open(1);
  }
  // A session that sees so many devices, with memory.
  void Open(size_t devices) {
    replayer_.reset();
    held_.reset();
    environment_.contexts.assign(devices, reinterpret_cast<CUcontext>(1));
    const absl::StatusOr<int> fd = ipc::SessionFile::Create(1, 0);
    ASSERT_TRUE(fd.ok()) << fd.status();
    absl::StatusOr<ipc::SessionFile> file = ipc::SessionFile::Map(*fd);
    close(*fd);
    ASSERT_TRUE(file.ok()) << file.status();
    SessionSetup setup{.session_id = 1, .slot = 0, .file = std::move(*file), .channel = {}};
    setup.pinned_fd = memfd_create("pinned", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(setup.pinned_fd, static_cast<off_t>(ipc::limits::kPinnedWindowBytes)), 0);
    held_ = std::make_unique<Holdings>(environment_, setup, nullptr);
    std::string error;
    EXPECT_TRUE(held_->arena.Reserve(&error)) << error;
    EXPECT_EQ(held_->arena.Map(0, kMemory, 2 * MiB), CUDA_SUCCESS);
    StreamTable::Stream* stream = nullptr;
    EXPECT_EQ(held_->streams.Create(ipc::limits::kLegacySlots, 0, 0, 0, &stream), CUDA_SUCCESS);
    session_.stream = stream->driver;
    replayer_ = std::make_unique<RunReplayer>(
        RunReplayer::Surroundings{held_.get(), &life_, &session_, &session_, page_.get(),
                                  area_.data(), absl::Milliseconds(20)});
  }

  static std::vector<Named> Launches(uint32_t count) {
    std::vector<Named> launches;
    for (uint32_t i = 0; i < count; ++i) launches.push_back({i % 3, 1, i * 5, 0});
    return launches;
  }
  // Serves a run as the session's loop does, and what it must leave. Returns what was replayed.
  uint32_t Serve(const std::vector<Named>& launches, bool verify, uint32_t place = 0) {
    std::vector<std::byte> messages;
    for (const Named& named : launches) {
      AppendStep(named, &messages);
      uint8_t& byte = expected_[named.argument % kBytes];
      if (named.function != kFailing)
        byte = After({.function = named.function, .argument = named.argument}, byte, false);
    }
    last_ = replayer_->TryUntrusted(place, messages, 0, verify);
    const size_t one = ipc::PaddedBytes(sizeof(ipc::MessageHeader) + sizeof(Named));
    for (size_t at = last_.bytes; at < messages.size(); at += one)
      (void)session_.DoStepUntrusted(std::span(messages).subspan(at, one));
    return last_.launches;
  }
  // The run is a graph from now on.
  void Learn(const std::vector<Named>& launches, uint32_t place = 0) {
    for (int time = 0; time < 2; ++time) Serve(launches, false, place);
    session_.single = session_.in_graphs = 0;
  }
  void ExpectBytes() {
    for (uint32_t i = 0; i < kBytes; ++i)
      ASSERT_EQ(recording_.At(kMemory + i), expected_[i]) << "byte " << i;
  }
  // The run is a graph, was asked to be verified, and was executed once.
  void ExpectUnverified(const std::vector<Named>& launches) {
    Learn(launches);
    EXPECT_EQ(Serve(launches, true), launches.size());
    EXPECT_EQ(session_.in_graphs, launches.size());
    EXPECT_EQ(session_.single, 0u);
    EXPECT_EQ(verified(), 0u);
    ExpectBytes();
  }
  uint64_t verified() const { return page_->replay.verified.load(); }
  uint64_t mismatches() const { return page_->replay.mismatches.load(); }

  Recording& recording_;
  LaunchGraphs& graphs_ = FreshLaunchGraphs();
  Environment environment_;
  ipc::DriverTable table_;
  LaneTable lanes_{&environment_};
  BackedAddresses backed_;
  std::unique_ptr<ipc::SessionPage> page_ = std::make_unique<ipc::SessionPage>();
  SessionLife life_{page_.get(), 0};
  Session session_;
  std::vector<std::byte> area_{ipc::limits::kChunkAreaBytes};
  std::unique_ptr<Holdings> held_;
  std::unique_ptr<RunReplayer> replayer_;
  LaunchRuns::Replayed last_;
  std::array<uint8_t, kBytes> expected_{};
};

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
}  // namespace worker
