// Runs over a driver that notes what runs, and a session whose names the test gives.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "daemon/worker/device_write.h"
#include "daemon/worker/launch_runs.h"
#include "ipc/calls.h"
#include "ipc/message.h"
#include "tests/daemon/worker/launch_graphs.h"

namespace worker::runs_test {

inline LaunchGraphs& fake = FreshLaunchGraphs();

inline ipc::DriverTable FakeDriver() {
  ipc::DriverTable driver = ipc::NullDriver();
  AddLaunchGraphs(&driver);
  return driver;
}

// The session: names stand for objects; name 0 is of no object.
class Session final : public LaunchSource {
 public:
  std::optional<Described> DescribeStepUntrusted(std::span<const std::byte> message) override {
    Named named;
    std::memcpy(&named, message.data() + sizeof(ipc::MessageHeader), sizeof named);
    const CUstream on = reinterpret_cast<CUstream>(named.stream * uintptr_t{1000} + streams);
    if (named.op == ipc::Op::cuMemsetD32Async)
      return Described{
          {}, on, DeviceWrite{.elements = 9, .value = named.argument, .element_bytes = 4}};
    if (named.op == ipc::Op::CopyDevice)
      return Described{{}, on, DeviceWrite{.elements = named.argument}};
    if (named.function == 0) return std::nullopt;
    const std::byte* const argument =
        message.data() + sizeof(ipc::MessageHeader) + offsetof(Named, argument);
    const uintptr_t function = named.function * 1000 + functions;
    return Described{{.function = reinterpret_cast<CUfunction>(function),
                      .params = argument,
                      .param_bytes = 4 + named.bytes_more},
                     on};
  }
  bool AreBacked(TouchedSpans*) override { return is_backed; }
  bool HasStream(CUstream) override { return has_streams; }
  void UseStream(CUstream) override {}
  bool AreOrdered(CUstream, CUstream) override { return are_ordered; }
  uint64_t names_version() const override { return version; }
  Ran RanAlone(const Named& named) const {
    const uintptr_t stream = named.stream * uintptr_t{1000} + streams;
    if (named.op == ipc::Op::cuMemsetD32Async) return {kFill, named.argument, stream};
    if (named.op == ipc::Op::CopyDevice) return {kCopy, named.argument, stream};
    return {named.function * 1000 + functions, named.argument, stream};
  }

  uintptr_t functions = 0, streams = 0;
  uint64_t version = 0;
  bool has_streams = true, is_backed = true, are_ordered = false;
};

class LaunchRunsTest : public testing::Test {
 protected:
  LaunchRunsTest() { FreshLaunchGraphs(); }

  // The same with a fill and a copy among them.
  std::vector<Named> Mixed(uint32_t count, uint32_t argument) {
    std::vector<Named> steps = Launches(count, argument);
    steps[1] = {0, 1, 70, 0, ipc::Op::cuMemsetD32Async};
    steps[3] = {0, 1, 80, 0, ipc::Op::CopyDevice};
    return steps;
  }
  // Serves a chunk as the session's loop does: what is not replayed runs alone.
  uint32_t Serve(uint32_t place, const std::vector<Named>& launches) {
    std::vector<std::byte> messages;
    for (const Named& named : launches) AppendStep(named, &messages);
    AppendStep({.op = ipc::Op::StreamMark}, &messages);
    uint32_t replayed = 0;
    size_t at = 0;
    for (size_t i = 0; i < launches.size();) {
      const LaunchRuns::Replayed done = runs_.TryUntrusted(
          place + static_cast<uint32_t>(at), std::span(messages).subspan(at), nullptr);
      if (done.bytes == 0) {
        if (Runs(launches[i])) fake.ran.push_back(session_.RanAlone(launches[i]));
        at += ipc::PaddedBytes(sizeof(ipc::MessageHeader) + sizeof(Named) + launches[i].bytes_more);
        ++i;
      } else {
        at += done.bytes;
        i += done.messages;
        replayed += done.launches;
      }
    }
    return replayed;
  }
  std::vector<Named> Launches(uint32_t count, uint32_t argument) {
    std::vector<Named> launches;
    for (uint32_t i = 0; i < count; ++i) launches.push_back({1 + i % 3, 1, argument + i});
    return launches;
  }
  // Whether it does anything: name 0 is of no function.
  static bool Runs(const Named& named) {
    return named.op != ipc::Op::Launch || named.function != 0;
  }
  void ExpectRan(const std::vector<Named>& launches) {
    std::vector<Ran> expected;
    for (const Named& named : launches) {
      if (Runs(named)) expected.push_back(session_.RanAlone(named));
    }
    EXPECT_EQ(fake.ran, expected);
    fake.ran.clear();
  }
  // The same where only the order of a stream's own steps is the program's.
  void ExpectRanByStream(std::vector<Named> launches) {
    const auto earlier = [](const auto& a, const auto& b) { return a.stream < b.stream; };
    std::stable_sort(launches.begin(), launches.end(), earlier);
    std::stable_sort(fake.ran.begin(), fake.ran.end(), earlier);
    ExpectRan(launches);
  }

  // The client orders these launches, which lie at the place. `read`: words of their arguments.
  CUresult Order(uint32_t place, const std::vector<Named>& launches, std::vector<uint32_t> edges,
                 bool reads_arguments, std::vector<uint32_t> renames = {}) {
    std::vector<std::byte> messages;
    for (const Named& named : launches) AppendStep(named, &messages);
    std::memcpy(area_.data() + place, messages.data(), messages.size());
    std::vector<uint32_t> read((messages.size() / 4 + 31) / 32, ~0u);
    constexpr size_t kArgument = (sizeof(ipc::MessageHeader) + offsetof(Named, argument)) / 4;
    const size_t bytes = sizeof(ipc::MessageHeader) + sizeof(Named) + launches[0].bytes_more;
    const size_t words = ipc::PaddedBytes(bytes) / 4;
    for (size_t at = kArgument; !reads_arguments && at < messages.size() / 4; at += words)
      read[at / 32] &= ~(1u << (at % 32));
    return orders_.OrderRenamedLaunches(place, static_cast<unsigned>(messages.size()), edges.data(),
                                        static_cast<unsigned>(edges.size()), read.data(),
                                        static_cast<unsigned>(read.size()), nullptr, 0,
                                        renames.data(), static_cast<unsigned>(renames.size()),
                                        renames.empty() ? 0 : 4096);
  }
  using Places = std::vector<std::pair<size_t, size_t>>;

  ipc::DriverTable driver_ = FakeDriver();
  Session session_;
  std::vector<std::byte> area_{ipc::limits::kChunkAreaBytes};
  FakeScratch scratch_;
  LaunchOrders orders_{area_, &scratch_};
  LaunchRuns runs_{driver_, &session_, &orders_};
};

}  // namespace worker::runs_test
