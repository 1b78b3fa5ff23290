// Renamed versions of ranges: every order that is allowed leaves what the program's order leaves.
#include "replay/versions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/harness/seed.h"

namespace replay {
namespace {

using scheduler::streams::Dag;
using scheduler::streams::LongestPath;
using scheduler::streams::NodeId;
using TouchKind = scheduler::streams::Access;

constexpr uint64_t kReal = 0x10000, kScratch = uint64_t{1} << 40, kBlockBytes = 4, kBlocks = 4;
constexpr uint64_t kPlenty = 1u << 20;

// --- launches by hand ----------------------------------------------------------------------------

// Reads one range and overwrites another whole.
LaunchTouches Layer(const Range& from, const Range& to) {
  LaunchTouches launch;
  launch.by_parameter = {{.parameter = 0, .value = from.begin, .touch = {from, TouchKind::kRead}},
                         {.parameter = 8, .value = to.begin, .touch = {to, TouchKind::kWrite}}};
  launch.covers = {to};
  return launch;
}

constexpr Range BufferAt(uint64_t number) { return {kReal + number * 0x1000, 1000}; }

// Branches that each write scratch memory, and from there a result of their own.
std::vector<LaunchTouches> Branches(uint64_t count) {
  std::vector<LaunchTouches> launches;
  for (uint64_t i = 0; i < count; ++i) {
    launches.push_back(Layer(BufferAt(0), BufferAt(1)));
    launches.push_back(Layer(BufferAt(1), BufferAt(2 + i)));
  }
  return launches;
}

TEST(VersionsTest, BranchesThatShareScratchMemoryAreIndependent) {
  const std::vector<LaunchTouches> launches = Branches(8);
  EXPECT_EQ(LongestPath(*OrderWith(launches, {})), 16);
  const Renaming renaming = ChooseRenaming(launches, kPlenty);
  EXPECT_EQ(LongestPath(*OrderWith(launches, renaming)), 2);
  EXPECT_EQ(renaming.renames.size(), 14u) << "the last version stays";
  EXPECT_EQ(renaming.bytes, 7 * 1024u);
}

TEST(VersionsTest, AsManyAreRenamedAsThereIsRoomFor) {
  const std::vector<LaunchTouches> launches = Branches(4);
  for (const auto& [bytes, renames, path] :
       std::vector<std::tuple<uint64_t, size_t, int>>{{0, 0, 8}, {1024, 2, 6}, {2100, 4, 4}}) {
    const Renaming renaming = ChooseRenaming(launches, bytes);
    EXPECT_LE(renaming.bytes, bytes);
    EXPECT_EQ(renaming.renames.size(), renames);
    EXPECT_EQ(LongestPath(*OrderWith(launches, renaming)), path);
  }
}

TEST(VersionsTest, TheLongestPathComesFirst) {
  std::vector<LaunchTouches> launches = Branches(3);
  for (uint64_t i = 0; i < 2; ++i) {  // another scratch buffer, of two branches
    launches.push_back(Layer(BufferAt(10), BufferAt(11)));
    launches.push_back(Layer(BufferAt(11), BufferAt(12 + i)));
  }
  const Renaming renaming = ChooseRenaming(launches, 1024);
  ASSERT_EQ(renaming.renames.size(), 2u);
  EXPECT_LT(renaming.renames[1].launch, 6u);
  EXPECT_EQ(LongestPath(*OrderWith(launches, renaming)), 4);
}

TEST(VersionsTest, WhatSavesNoOrderStays) {
  const std::vector<LaunchTouches> there_and_back = {Layer(BufferAt(0), BufferAt(1)),
                                                     Layer(BufferAt(1), BufferAt(0)),
                                                     Layer(BufferAt(0), BufferAt(1))};
  EXPECT_EQ(ChooseRenaming(there_and_back, kPlenty).renames.size(), 0u);
}

TEST(VersionsTest, AVersionMayBeOverwrittenPartByPart) {
  std::vector<LaunchTouches> launches = Branches(1);
  const Range low = {BufferAt(1).begin, 400}, high = {low.end(), 600};
  launches.push_back(Layer(BufferAt(0), low));
  launches.push_back(Layer(low, BufferAt(5)));
  launches.push_back(Layer(BufferAt(0), high));
  EXPECT_EQ(ChooseRenaming(launches, kPlenty).renames, (std::vector<Rename>{{0, 8, 0}, {1, 0, 0}}));
  launches.back().covers.clear();
  EXPECT_EQ(ChooseRenaming(launches, kPlenty).renames.size(), 0u);
}

TEST(VersionsTest, PlacesKeepTheAlignment) {
  const Range odd = {kReal + 0x1010, 40};
  const Renaming renaming =
      ChooseRenaming(std::vector<LaunchTouches>{Layer(BufferAt(0), odd), Layer(odd, BufferAt(3)),
                                                Layer(BufferAt(0), odd), Layer(odd, BufferAt(4))},
                     kPlenty);
  EXPECT_EQ(renaming.renames, (std::vector<Rename>{{0, 8, 0x10}, {1, 0, 0x10}}));
  EXPECT_EQ(renaming.bytes, kPlaceAlignment);
}

class UnrenamedTest : public ::testing::Test {
 protected:
  size_t Renames() const { return ChooseRenaming(launches_, kPlenty).renames.size(); }
  std::vector<LaunchTouches> launches_ = Branches(2);
};

TEST_F(UnrenamedTest, Otherwise) { EXPECT_EQ(Renames(), 2u); }
TEST_F(UnrenamedTest, AVersionThatIsNotOverwrittenWholeAgain) {
  launches_[2].covers[0].bytes -= 1;
  EXPECT_EQ(Renames(), 0u);
}
TEST_F(UnrenamedTest, AVersionThatDoesNotBeginWhole) {
  launches_[0].covers.clear();
  EXPECT_EQ(Renames(), 0u);
}
TEST_F(UnrenamedTest, AVersionThatIsReachedOtherwise) {
  launches_[1].by_parameter[0].parameter.reset();
  EXPECT_EQ(Renames(), 0u);
}
TEST_F(UnrenamedTest, AParameterThatReachesMore) {
  launches_[1].by_parameter[0].touch.range.bytes += 1;
  EXPECT_EQ(Renames(), 0u);
}
TEST_F(UnrenamedTest, AParameterThatPointsOutside) {
  launches_[1].by_parameter[0].value -= 4;
  EXPECT_EQ(Renames(), 0u);
}
TEST_F(UnrenamedTest, AVersionBeforeALaunchThatMayReachAnything) {
  LaunchTouches unknown;
  unknown.unknown = "its kernel";
  launches_.insert(launches_.begin() + 1, unknown);
  EXPECT_EQ(Renames(), 0u);
}

// --- launches by chance --------------------------------------------------------------------------

uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t x = (a ^ (b * 0xff51afd7ed558ccdu)) + 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  return x ^ (x >> 31);
}

// A few launches that read and write ranges of four blocks through parameters.
class RandomRun {
 public:
  explicit RandomRun(uint64_t seed) : random_(seed) {
    launches_.resize(2 + Below(5));
    for (LaunchTouches& launch : launches_) launch = Draw();
  }
  const std::vector<LaunchTouches>& launches() const { return launches_; }
  uint64_t Below(uint64_t bound) { return random_() % bound; }

 private:
  LaunchTouches Draw() {
    LaunchTouches launch;
    if (Below(12) == 0) {
      launch.unknown = "drawn";
      return launch;
    }
    const uint64_t reads = Below(3), writes = 1 + Below(2);
    for (uint32_t i = 0; i < reads + writes; ++i) {
      ParameterTouch each{.touch = {DrawRange(), TouchKind::kRead}};
      if (i >= reads) each.touch.access = Below(4) == 0 ? TouchKind::kUpdate : TouchKind::kWrite;
      each.value = each.touch.range.begin + (Below(8) == 0 ? 1 : 0) - (Below(16) == 0 ? 2 : 0);
      if (Below(10) != 0) each.parameter = 8 * i;
      launch.by_parameter.push_back(each);
    }
    // Of two ranges through one parameter, the parameter reaches both.
    if (Below(6) == 0) {
      launch.by_parameter.push_back(launch.by_parameter.front());
      launch.by_parameter.back().touch.range = DrawRange();
    }
    for (const ParameterTouch& each : launch.by_parameter) {
      if (each.touch.access == TouchKind::kWrite && Below(5) != 0 && !IsRead(launch, each.touch))
        launch.covers.push_back(each.touch.range);
    }
    return launch;
  }
  Range DrawRange() {
    const uint64_t block = Below(kBlocks);
    if (Below(6) == 0) return {kReal + block * kBlockBytes + Below(2), 1 + Below(kBlockBytes - 1)};
    const uint64_t blocks = Below(6) == 0 ? 2 : 1;
    return {kReal + block * kBlockBytes, blocks * kBlockBytes};
  }
  static bool IsRead(const LaunchTouches& launch, const Touch& written) {
    for (const ParameterTouch& each : launch.by_parameter) {
      if (each.touch.access == TouchKind::kWrite) continue;
      if (each.touch.range.begin < written.range.end() &&
          written.range.begin < each.touch.range.end())
        return true;
    }
    return false;
  }

  std::mt19937_64 random_;
  std::vector<LaunchTouches> launches_;
};

// What launches leave: bytes by address, and what each launch has read.
class Machine {
 public:
  Machine(const std::vector<LaunchTouches>& launches, const Renaming& renaming)
      : launches_(launches), read_(launches.size()) {
    for (const Rename& rename : renaming.renames)
      places_[{rename.launch, rename.parameter}] = kScratch + rename.place;
    for (uint64_t at = kReal; at < kEnd; ++at) Byte(at);
  }

  void Run(uint32_t number) {
    const LaunchTouches& launch = launches_[number];
    uint64_t seen = number;
    if (!launch.unknown.empty()) {  // it reads and changes all
      for (uint64_t at = kReal; at < kEnd; ++at) Byte(at) = seen = Mix(seen, Byte(at));
    }
    for (const ParameterTouch& each : launch.by_parameter) {
      if (each.touch.access == TouchKind::kWrite) continue;
      ForEachByte(number, each, [&](uint64_t, uint64_t& byte) { seen = Mix(seen, byte); });
    }
    for (const ParameterTouch& each : launch.by_parameter) {
      if (each.touch.access == TouchKind::kRead) continue;
      ForEachByte(number, each, [&](uint64_t at, uint64_t& byte) {
        // A byte that is not covered is written as the kernel's data say.
        if (IsCovered(launch, at) || Mix(seen, at) % 2 == 0) byte = Mix(Mix(seen, 7), at);
      });
    }
    read_[number] = seen;
  }
  std::map<uint64_t, uint64_t> RealBytes() const {
    return {bytes_.begin(), bytes_.lower_bound(kScratch)};
  }
  const std::vector<uint64_t>& read() const { return read_; }

 private:
  static constexpr uint64_t kEnd = kReal + (kBlocks + 1) * kBlockBytes;

  // Scratch memory holds something at first, too.
  uint64_t& Byte(uint64_t address) {
    return bytes_.try_emplace(address, Mix(address, 1)).first->second;
  }
  template <class Visit>
  void ForEachByte(uint32_t number, const ParameterTouch& each, const Visit& visit) {
    uint64_t moved_by = 0;
    if (each.parameter.has_value()) {
      const auto place = places_.find({number, *each.parameter});
      if (place != places_.end()) moved_by = place->second - each.value;
    }
    for (uint64_t at = each.touch.range.begin; at < each.touch.range.end(); ++at)
      visit(at, Byte(at + moved_by));
  }
  static bool IsCovered(const LaunchTouches& launch, uint64_t address) {
    for (const Range& range : launch.covers) {
      if (address >= range.begin && address < range.end()) return true;
    }
    return false;
  }

  const std::vector<LaunchTouches>& launches_;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> places_;
  std::map<uint64_t, uint64_t> bytes_;
  std::vector<uint64_t> read_;
};

// Calls visit(order) for each order that the graph allows.
template <class Visit>
void ForEachOrder(const Dag& dag, std::vector<uint32_t>* done, const Visit& visit) {
  if (static_cast<int>(done->size()) == dag.nodes()) return visit(*done);
  for (NodeId node = 0; node < dag.nodes(); ++node) {
    const auto is_done = [&](NodeId other) {
      return std::find(done->begin(), done->end(), static_cast<uint32_t>(other)) != done->end();
    };
    const std::span<const NodeId> before = dag.Predecessors(node);
    if (is_done(node) || !std::all_of(before.begin(), before.end(), is_done)) continue;
    done->push_back(static_cast<uint32_t>(node));
    ForEachOrder(dag, done, visit);
    done->pop_back();
  }
}

std::string Wrong(const std::vector<LaunchTouches>& launches, const Renaming& renaming) {
  Machine in_order(launches, {});
  for (uint32_t i = 0; i < launches.size(); ++i) in_order.Run(i);
  std::string wrong;
  std::vector<uint32_t> done;
  ForEachOrder(*OrderWith(launches, renaming), &done, [&](const std::vector<uint32_t>& order) {
    Machine machine(launches, renaming);
    for (const uint32_t number : order) machine.Run(number);
    if (machine.read() != in_order.read()) wrong = "a launch reads something else";
    if (machine.RealBytes() != in_order.RealBytes()) wrong = "other bytes are left";
  });
  return wrong;
}

TEST(VersionsTest, EveryOrderLeavesWhatTheProgramsOrderLeaves) {
  const uint64_t seed = harness::Seed();
  uint64_t renamed = 0;
  constexpr uint64_t kRuns = 4000;
  for (uint64_t k = 0; k < kRuns; ++k) {
    RandomRun run(seed + k);
    const uint64_t bytes_max = run.Below(3) == 0 ? 512 * run.Below(4) : kPlenty;
    const Renaming renaming = ChooseRenaming(run.launches(), bytes_max);
    ASSERT_LE(renaming.bytes, bytes_max);
    ASSERT_EQ(Wrong(run.launches(), renaming), "") << "LANEWAY_TEST_SEED=" << seed + k;
    if (renaming.renames.empty()) continue;
    ++renamed;
    EXPECT_LE(LongestPath(*OrderWith(run.launches(), renaming)),
              LongestPath(*OrderWith(run.launches(), {})));
  }
  std::printf("%llu of %llu runs have renamed versions\n", static_cast<unsigned long long>(renamed),
              static_cast<unsigned long long>(kRuns));
  EXPECT_GT(renamed, kRuns / 100);
}

}  // namespace
}  // namespace replay
