// Runs that are executed both ways, over the memory of a recording driver, and a session whose
// kernels each write one byte.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "daemon/worker/backed_addresses.h"
#include "daemon/worker/lanes.h"
#include "daemon/worker/run_replayer.h"
#include "ipc/calls/limits.h"
#include "ipc/chunks/chunk_format.h"
#include "ipc/message.h"
#include "tests/daemon/worker/bare_holdings.h"
#include "tests/daemon/worker/launch_graphs.h"
#include "tests/daemon/worker/recording_driver.h"

namespace worker::replayer_test {

using ipc::limits::MiB;

inline constexpr CUdeviceptr kMemory = ipc::limits::kSlotBase;
inline constexpr CUdeviceptr kPinned = ipc::limits::kSlotBase + ipc::limits::kDeviceArenaBytes;
// Where the session's first range of the worker's own lies.
inline constexpr CUdeviceptr kScratch = ipc::limits::kSlotBase + ipc::limits::kWorkerOffset;
inline constexpr uint32_t kBytes = 16;      // that kernels write
inline constexpr uint32_t kStrange = 100;   // kernels from here on do something else in a graph
inline constexpr uint32_t kFailing = 99;    // a kernel whose single launch is refused
inline constexpr uint32_t kTemporary = 98;  // a kernel that writes scratch memory in a graph alone

inline constexpr std::array<const char*, 4> kNames = {"copy", "scale", "add", "sum"};

inline CUresult FuncGetName(const char** name, CUfunction function) {
  *name = kNames[reinterpret_cast<uintptr_t>(function) % kNames.size()];
  return CUDA_SUCCESS;
}

// What a kernel does to the byte that its argument names.
inline uint8_t After(const Ran& ran, uint8_t before, bool in_graph) {
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
                      .param_bytes = 4 + NamedOf(message).bytes_more},
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
    if (ran.function == kTemporary) {
      const uint32_t place = ran.argument - static_cast<uint32_t>(kScratch);
      if (in_graph) ++recording->At(kScratch + place);
      return;
    }
    uint8_t& byte = recording->At(kMemory + ran.argument % kBytes);
    byte = After(ran, byte, in_graph);
    if (in_graph) ++in_graphs;
    if (in_graph && hangs_in_graph) recording->busy_streams.insert(stream);
  }
  static Named NamedOf(std::span<const std::byte> message) {
    Named named;
    std::memcpy(&named, message.data() + sizeof(ipc::MessageHeader), sizeof named);
    return named;
  }
  static Ran RanOf(std::span<const std::byte> message) {
    const Named named = NamedOf(message);
    return {.function = named.function, .argument = named.argument};
  }

  Recording* recording = nullptr;
  CUstream stream = nullptr;
  uint64_t single = 0, in_graphs = 0;  // kernels that ran
  bool leaves_bytes_alone = true, hangs_in_graph = false;
};

// Lets the session have all that it asks for.
class FreeMemory final : public PersistentMemory {
 public:
  CUresult AskForMemory(uint64_t) override { return CUDA_SUCCESS; }
  CUresult MapWithRoom(uint64_t, const std::function<CUresult()>& map) override { return map(); }
  CUresult MapIfFree(uint64_t, const std::function<CUresult()>& map) override { return map(); }
  void GiveMemoryBack(uint64_t) override {}
  void FreeRange(CUdeviceptr) override {}
};

class RunReplayerTest : public testing::Test {
 protected:
  RunReplayerTest() : recording_(FreshRecording()), environment_(RecordingEnvironment()) {
    recording_.capacity_bytes = uint64_t{4} << 30;
    table_ = *environment_.driver;
    AddLaunchGraphs(&table_);
    table_.cuFuncGetName = &FuncGetName;
    environment_.driver = &table_;
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
    held_ = MakeHoldings(&environment_, devices);
    ASSERT_NE(held_, nullptr);
    EXPECT_EQ(held_->arena.Map(0, kMemory, 2 * MiB), CUDA_SUCCESS);
    StreamTable::Stream* stream = nullptr;
    EXPECT_EQ(held_->streams.Create(ipc::limits::kLegacySlots, 0, 0, 0, &stream), CUDA_SUCCESS);
    session_.stream = stream->driver;
    replayer_ = std::make_unique<RunReplayer>(
        RunReplayer::Surroundings{held_.get(), &call_, &memory_, &life_, &session_, &session_,
                                  page_.get(), area_.data(), absl::Milliseconds(20)});
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
      if (named.function != kFailing && named.function != kTemporary)
        byte = After({.function = named.function, .argument = named.argument}, byte, false);
    }
    last_ = replayer_->TryUntrusted(place, messages, 0, verify);
    const size_t one = ipc::PaddedBytes(ipc::HeaderAt(messages).bytes);
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
  CallContext call_{.device = 0};
  FreeMemory memory_;
  Session session_;
  std::vector<std::byte> area_{ipc::limits::kChunkAreaBytes};
  std::unique_ptr<Holdings> held_;
  std::unique_ptr<RunReplayer> replayer_;
  LaunchRuns::Replayed last_;
  std::array<uint8_t, kBytes> expected_{};
};

}  // namespace worker::replayer_test
