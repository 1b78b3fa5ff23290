// Launches that are replayed as a graph run as they would have run one by one: the same functions,
// in the same order, with the arguments of this time.
#include "daemon/worker/launch_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "ipc/calls.h"
#include "ipc/chunks/chunk_format.h"
#include "ipc/message.h"
#include "tests/daemon/worker/launch_graphs.h"
#include "tests/harness/seed.h"

namespace worker {
namespace {

LaunchGraphs& fake = FreshLaunchGraphs();

ipc::DriverTable FakeDriver() {
  ipc::DriverTable driver = ipc::NullDriver();
  AddLaunchGraphs(&driver);
  return driver;
}

// The session: names stand for objects; name 0 is of no object.
class Session final : public LaunchSource {
 public:
  std::optional<Described> DescribeLaunchUntrusted(std::span<const std::byte> message) override {
    Named named;
    std::memcpy(&named, message.data() + sizeof(ipc::MessageHeader), sizeof named);
    if (named.function == 0) return std::nullopt;
    const std::byte* const argument =
        message.data() + sizeof(ipc::MessageHeader) + offsetof(Named, argument);
    const uintptr_t function = named.function * 1000 + functions;
    const uintptr_t stream = named.stream * 1000 + streams;
    return Described{{.function = reinterpret_cast<CUfunction>(function),
                      .params = argument,
                      .param_bytes = 4 + named.bytes_more},
                     reinterpret_cast<CUstream>(stream)};
  }
  bool UseStream(CUstream) override { return has_streams; }
  uint64_t names_version() const override { return version; }
  Ran RanAlone(const Named& named) const {
    return {named.function * 1000 + functions, named.argument, named.stream * 1000 + streams};
  }

  uintptr_t functions = 0, streams = 0;
  uint64_t version = 0;
  bool has_streams = true;
};

class LaunchRunsTest : public testing::Test {
 protected:
  LaunchRunsTest() { FreshLaunchGraphs(); }

  // Serves a chunk as the session's loop does: what is not replayed runs alone.
  uint32_t Serve(uint32_t place, const std::vector<Named>& launches) {
    std::vector<std::byte> messages;
    for (const Named& named : launches) AppendLaunch(named, &messages);
    AppendLaunch({}, &messages, ipc::Op::StreamMark);
    uint32_t replayed = 0;
    size_t at = 0;
    for (size_t i = 0; i < launches.size();) {
      const LaunchRuns::Replayed done = runs_.TryUntrusted(
          place + static_cast<uint32_t>(at), std::span(messages).subspan(at), nullptr);
      if (done.bytes == 0) {
        if (launches[i].function != 0) fake.ran.push_back(session_.RanAlone(launches[i]));
        at += ipc::PaddedBytes(sizeof(ipc::MessageHeader) + sizeof(Named) + launches[i].bytes_more);
        ++i;
      } else {
        at += done.bytes;
        i += done.launches;
        replayed += done.launches;
      }
    }
    return replayed;
  }
  std::vector<Named> Launches(uint32_t count, uint32_t argument) {
    std::vector<Named> launches;
    for (uint32_t i = 0; i < count; ++i) launches.push_back({1 + i % 3, 1, argument + i, 0});
    return launches;
  }
  void ExpectRan(const std::vector<Named>& launches) {
    std::vector<Ran> expected;
    for (const Named& named : launches) {
      if (named.function != 0) expected.push_back(session_.RanAlone(named));
    }
    EXPECT_EQ(fake.ran, expected);
    fake.ran.clear();
  }

  // The client orders these launches, which lie at the place. `read`: words of their arguments.
  CUresult Order(uint32_t place, const std::vector<Named>& launches, std::vector<uint32_t> edges,
                 bool reads_arguments) {
    std::vector<std::byte> messages;
    for (const Named& named : launches) AppendLaunch(named, &messages);
    std::memcpy(area_.data() + place, messages.data(), messages.size());
    std::vector<uint32_t> read((messages.size() / 4 + 31) / 32, ~0u);
    constexpr size_t kArgument = (sizeof(ipc::MessageHeader) + offsetof(Named, argument)) / 4;
    const size_t words = ipc::PaddedBytes(sizeof(ipc::MessageHeader) + sizeof(Named)) / 4;
    for (size_t at = kArgument; !reads_arguments && at < messages.size() / 4; at += words)
      read[at / 32] &= ~(1u << (at % 32));
    return orders_.OrderLaunches(place, static_cast<unsigned>(messages.size()), edges.data(),
                                 static_cast<unsigned>(edges.size()), read.data(),
                                 static_cast<unsigned>(read.size()), nullptr, 0);
  }
  using Places = std::vector<std::pair<size_t, size_t>>;

  ipc::DriverTable driver_ = FakeDriver();
  Session session_;
  std::vector<std::byte> area_{ipc::limits::kChunkAreaBytes};
  LaunchOrders orders_{area_};
  LaunchRuns runs_{driver_, &session_, &orders_};
};

TEST_F(LaunchRunsTest, ARunIsAGraphFromItsSecondTime) {
  EXPECT_EQ(Serve(0, Launches(5, 7)), 0u);
  ExpectRan(Launches(5, 7));
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

TEST_F(LaunchRunsTest, AnOrderOverTwoStreamsIsNotFollowed) {
  std::vector<Named> launches = Launches(6, 7);
  for (size_t i = 3; i < 6; ++i) launches[i].stream = 2;
  ASSERT_EQ(Order(0, launches, {0, 1}, true), CUDA_SUCCESS);
  for (int time = 0; time < 6; ++time) {
    Serve(0, launches);
    ExpectRan(launches);
    EXPECT_NE(fake.edges, (Places{{0, 1}}));
  }
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

TEST_F(LaunchRunsTest, ARunEndsWhereTheStreamChanges) {
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
  for (const Named& named : Launches(5, 7)) AppendLaunch(named, &messages);
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

TEST_F(LaunchRunsTest, WhateverComesRunsOnceInOrder) {
  std::mt19937_64 random(harness::Seed());
  const auto below = [&](uint32_t bound) { return static_cast<uint32_t>(random() % bound); };
  std::vector<std::vector<Named>> chunks(20);
  uint64_t replayed = 0, served = 0;
  for (uint32_t step = 0; step < 20'000; ++step) {
    std::vector<Named>& chunk = chunks[below(20)];
    if (chunk.empty() || below(100) == 0) chunk = Launches(1 + below(30), below(1000));
    for (uint32_t changes = below(4); changes != 0; --changes) {
      Named& named = chunk[below(static_cast<uint32_t>(chunk.size()))];
      const uint32_t what = below(40);
      if (what < 30) named.argument = below(1000);
      if (what == 30) named.function = below(5);
      if (what == 31) named.stream = 1 + below(2);
      if (what == 32) named.bytes_more = 4 * below(8);
    }
    if (below(200) == 0) session_.functions = below(100), ++session_.version;
    if (below(200) == 0) session_.streams = below(100), ++session_.version;
    fake.change = below(300) == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    served += chunk.size();
    replayed += Serve(static_cast<uint32_t>(&chunk - chunks.data()) << 16, chunk);
    ASSERT_NO_FATAL_FAILURE(ExpectRan(chunk));
    if (below(250) == 0) runs_.Clear();
  }
  EXPECT_GT(replayed, served / 8);
}

}  // namespace
}  // namespace worker
