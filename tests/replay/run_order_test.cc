// Launches wait for what they depend on, and for nothing else.
#include "replay/run_order.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "tests/harness/seed.h"
#include "tests/replay/parsed_kernel.h"

namespace replay {
namespace {

using scheduler::streams::Edge;
using testing::ParsedKernel;

constexpr uint64_t kBase = 0x100000, kBytes = 0x1000;
constexpr uint64_t kBuffers = 6;

// Reads `a`, writes `b` at the thread's index; `n` is a number that no address depends on.
const char* const kCopy = R"(
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r9, [n];
    mov.u32 %r3, %tid.x; mul.wide.s32 %rd3, %r3, 4;
    add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
    ld.global.u32 %r5, [%rd4]; add.u32 %r5, %r5, %r9; st.global.u32 [%rd5], %r5;)";
const char* const kCopyParameters = ".param .u64 a, .param .u64 b, .param .u32 n";
// Its address was read from memory.
const char* const kChase = R"(
    ld.param.u64 %rd1, [a]; ld.global.u64 %rd2, [%rd1]; st.global.u32 [%rd2], 1;)";

uint64_t Buffer(uint64_t number) { return kBase + number * kBytes; }

class RunOrderTest : public ::testing::Test {
 protected:
  RunOrderTest()
      : copy_(kCopyParameters, kCopy),
        chase_(".param .u64 a", kChase),
        copies_(Analyse(copy_.kernel())),
        chases_(Analyse(chase_.kernel())) {}

  void Copy(uint64_t from, uint64_t to, uint32_t number = 0) {
    std::vector<std::byte>& parameters = *held_.emplace_back(new std::vector<std::byte>(20));
    std::memcpy(parameters.data(), &from, 8);
    std::memcpy(parameters.data() + 8, &to, 8);
    std::memcpy(parameters.data() + 16, &number, 4);
    Add(&copies_, parameters);
  }
  void Chase(uint64_t from) {
    std::vector<std::byte>& parameters = *held_.emplace_back(new std::vector<std::byte>(8));
    std::memcpy(parameters.data(), &from, 8);
    Add(&chases_, parameters);
  }
  void Add(const KernelAccess* access, std::span<const std::byte> parameters) {
    RunLaunch launch;
    launch.access = access;
    launch.grid = {.blocks = {1, 1, 1}, .threads = {32, 1, 1}};
    launch.parameters = parameters;
    launch.memory.allocation = [](uint64_t address) -> std::optional<Range> {
      if (address < kBase || address >= Buffer(kBuffers)) return std::nullopt;
      return Range{address / kBytes * kBytes, kBytes};
    };
    launch.memory.variable = [](uint32_t) { return std::nullopt; };
    launch.memory.movable = [this](uint64_t) { return movable_; };
    launches_.push_back(std::move(launch));
  }
  std::vector<std::pair<int, int>> Edges() {
    std::vector<std::pair<int, int>> edges;
    for (const Edge& edge : OrderOf(launches_, scheduler::streams::kV100).edges)
      edges.emplace_back(edge.from, edge.to);
    return edges;
  }
  // Whether a path leads from one launch to the other.
  static bool Reaches(const std::vector<Edge>& edges, int from, int to) {
    if (from == to) return true;
    for (const Edge& edge : edges) {
      if (edge.from == from && Reaches(edges, edge.to, to)) return true;
    }
    return false;
  }

  const ParsedKernel copy_, chase_;
  const KernelAccess copies_, chases_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> held_;
  std::vector<RunLaunch> launches_;
  bool movable_ = true;
};

using Pairs = std::vector<std::pair<int, int>>;

TEST_F(RunOrderTest, BranchesWaitForTheirBeginningAlone) {
  Copy(Buffer(0), Buffer(1));
  Copy(Buffer(1), Buffer(2));
  Copy(Buffer(1), Buffer(3));
  Copy(Buffer(2), Buffer(4));
  EXPECT_EQ(Edges(), (Pairs{{0, 1}, {0, 2}, {1, 3}}));
  const RunOrder order = OrderOf(launches_, scheduler::streams::kV100);
  EXPECT_EQ(order.width, 2);
  EXPECT_EQ(order.length, 3);
  EXPECT_EQ(order.attributed, 4);
  EXPECT_TRUE(order.concurrent);
}

TEST_F(RunOrderTest, AWriteWaitsForReadsBefore) {
  Copy(Buffer(0), Buffer(1));
  Copy(Buffer(2), Buffer(0));
  EXPECT_EQ(Edges(), (Pairs{{0, 1}}));
}

TEST_F(RunOrderTest, AWriteWaitsForWritesBefore) {
  Copy(Buffer(0), Buffer(1));
  Copy(Buffer(2), Buffer(1));
  EXPECT_EQ(Edges(), (Pairs{{0, 1}}));
}

TEST_F(RunOrderTest, PartsOfOneBufferAreIndependent) {
  Copy(Buffer(0), Buffer(1));
  Copy(Buffer(0), Buffer(1) + 128);
  EXPECT_EQ(Edges(), Pairs{});
}

TEST_F(RunOrderTest, WhatIsNotKnownKeepsItsPlace) {
  Copy(Buffer(0), Buffer(1));
  Chase(Buffer(5));
  Copy(Buffer(2), Buffer(3));
  EXPECT_EQ(Edges(), (Pairs{{0, 1}, {1, 2}}));
  EXPECT_EQ(OrderOf(launches_, scheduler::streams::kV100).attributed, 2);
  launches_.clear();
  Copy(Buffer(0), Buffer(1));
  Add(nullptr, {});
  Copy(Buffer(2), kBase - 64);  // in no allocation
  EXPECT_EQ(Edges(), (Pairs{{0, 1}, {1, 2}}));
}

TEST_F(RunOrderTest, AChainRunsOneAfterAnother) {
  for (uint64_t i = 0; i < 5; ++i) Copy(Buffer(i), Buffer(i + 1));
  const RunOrder order = OrderOf(launches_, scheduler::streams::kV100);
  EXPECT_FALSE(order.concurrent);
  EXPECT_EQ(order.width, 1);
  EXPECT_EQ(order.length, 5);
}

TEST_F(RunOrderTest, VersionsOfScratchMemoryAreRenamed) {
  for (uint64_t branch = 0; branch < 2; ++branch) {
    Copy(Buffer(0), Buffer(1));
    Copy(Buffer(1), Buffer(2 + branch));
  }
  constexpr uint64_t kRoom = 1 << 20;
  const RunOrder order = OrderOf(launches_, scheduler::streams::kV100, kRoom);
  EXPECT_EQ(order.renaming.renames, (std::vector<Rename>{{0, 8, 0}, {1, 0, 0}}));
  EXPECT_EQ(order.renaming.bytes, 512u);
  EXPECT_EQ(order.width, 2);
  EXPECT_EQ(order.length, 2);
  EXPECT_EQ(OrderOf(launches_, scheduler::streams::kV100).length, 4) << "where there is no room";
  movable_ = false;
  EXPECT_EQ(OrderOf(launches_, scheduler::streams::kV100, kRoom).length, 4);
}

TEST_F(RunOrderTest, AddressesAreReadAndNumbersAreNot) {
  EXPECT_EQ(WordsRead(&copies_, 20, {}), (std::vector<bool>{true, true, true, true, false}));
  EXPECT_EQ(WordsRead(&chases_, 8, {}), (std::vector<bool>{false, false}));
  EXPECT_EQ(WordsRead(nullptr, 8, {}), (std::vector<bool>{false, false}));
}

TEST_F(RunOrderTest, AnAddressThatWalksIsRead) {
  const ParsedKernel walks(".param .u64 a", R"(
    ld.param.u64 %rd1, [a]; AGAIN: st.global.u32 [%rd1], 1; add.s64 %rd1, %rd1, 4;
    ld.global.u32 %r1, [%rd1]; setp.ne.u32 %p1, %r1, 0; @%p1 bra AGAIN;)");
  const KernelAccess access = Analyse(walks.kernel());
  EXPECT_EQ(WordsRead(&access, 8, {}), (std::vector<bool>{true, true}));
}

TEST_F(RunOrderTest, ABoundOfAnAddressIsRead) {
  const ParsedKernel bounded(".param .u64 a, .param .u32 n", R"(
    ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [n]; mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], 1;)");
  const KernelAccess access = Analyse(bounded.kernel());
  EXPECT_EQ(WordsRead(&access, 12, {}), (std::vector<bool>{true, true, true}));
}

TEST_F(RunOrderTest, ABoundOfAStoreIsReadWhereVersionsAreRenamed) {
  const ParsedKernel bounded(".param .u64 a, .param .u32 n", R"(
    ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x;
    mul.wide.u32 %rd2, %r2, 4; add.s64 %rd3, %rd1, %rd2; setp.lt.u32 %p1, %r2, %r1;
    @%p1 st.global.u32 [%rd3], 1;)");
  const KernelAccess access = Analyse(bounded.kernel());
  EXPECT_EQ(WordsRead(&access, 12, {.stores = true}), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(WordsRead(&access, 12, {}), (std::vector<bool>{true, true, false}));
}

// Overwrites 32 places of its part, or those below n.
class BoundedOrderTest : public RunOrderTest {
 protected:
  void Put(uint64_t to, uint32_t n) {
    std::vector<std::byte>& parameters = *held_.emplace_back(new std::vector<std::byte>(12));
    std::memcpy(parameters.data(), &to, 8);
    std::memcpy(parameters.data() + 8, &n, 4);
    Add(&puts_, parameters);
  }

  const ParsedKernel put_{".param .u64 a, .param .u32 n", R"(
    ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x;
    mul.wide.u32 %rd2, %r2, 4; add.s64 %rd3, %rd1, %rd2; setp.ge.u32 %p1, %r2, %r1;
    @%p1 bra END; st.global.u32 [%rd3], 1; END:)"};
  const KernelAccess puts_ = Analyse(put_.kernel());
};

TEST_F(BoundedOrderTest, PartsOfOneAllocationAreApartByTheirBounds) {
  Put(Buffer(0), 16);
  Put(Buffer(0) + 64, 16);
  const RunOrder order = OrderOf(launches_, scheduler::streams::kV100);
  EXPECT_TRUE(order.edges.empty());
  EXPECT_TRUE(order.grounds.bounds);
  EXPECT_EQ(WordsRead(&puts_, 12, order.grounds), (std::vector<bool>{true, true, true}));
}

TEST_F(BoundedOrderTest, ABoundThatChangesNothingIsNotRead) {
  Put(Buffer(0), 16);
  Put(Buffer(0) + 128, 16);
  const RunOrder order = OrderOf(launches_, scheduler::streams::kV100);
  EXPECT_TRUE(order.edges.empty());
  EXPECT_FALSE(order.grounds.bounds);
  EXPECT_EQ(WordsRead(&puts_, 12, order.grounds), (std::vector<bool>{true, true, false}));
}

TEST_F(BoundedOrderTest, AConditionThatIsTheSameForAllThreadsIsNone) {
  const ParsedKernel whole(".param .u64 a, .param .u32 n", R"(
    ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [n]; setp.eq.u32 %p1, %r1, 0;
    @%p1 bra END; st.global.u32 [%rd1], 1; END:)");
  const KernelAccess access = Analyse(whole.kernel());
  ASSERT_EQ(access.accesses.size(), 1u);
  EXPECT_TRUE(access.accesses[0].conditions.empty());
}

// Against the definition: two launches that touch a buffer in common, one of them with a write, are
// joined by a path; and two that no chain of such pairs joins are not.
TEST_F(RunOrderTest, PathsAreThoseOfTheDefinition) {
  std::mt19937_64 random(harness::Seed());
  for (int round = 0; round < 200; ++round) {
    launches_.clear();
    held_.clear();
    struct Used {
      uint64_t from, to;
    };
    std::vector<Used> used;
    for (size_t i = 0; i < 8; ++i) {
      used.push_back({random() % kBuffers, random() % kBuffers});
      Copy(Buffer(used.back().from), Buffer(used.back().to));
    }
    std::vector<Edge> direct;
    for (int a = 0; a < 8; ++a) {
      for (int b = a + 1; b < 8; ++b) {
        const Used &x = used[static_cast<size_t>(a)], &y = used[static_cast<size_t>(b)];
        if (x.to == y.from || x.to == y.to || x.from == y.to) direct.push_back({a, b});
      }
    }
    const RunOrder order = OrderOf(launches_, scheduler::streams::kV100);
    for (int a = 0; a < 8; ++a) {
      for (int b = a + 1; b < 8; ++b)
        ASSERT_EQ(Reaches(order.edges, a, b), Reaches(direct, a, b)) << a << " " << b;
    }
  }
}

}  // namespace
}  // namespace replay
