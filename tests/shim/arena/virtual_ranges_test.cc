#include "shim/arena/virtual_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "tests/harness/events.h"
#include "tests/harness/seed.h"
#include "tests/shim/arena/random.h"

namespace shim_arena_test {
namespace {

using shim::arena::kVirtualStep;
using shim::arena::Range;
using shim::arena::VirtualRanges;

using Id = VirtualRanges::Id;
using Memory = VirtualRanges::Memory;
using MapAnswer = VirtualRanges::MapAnswer;

constexpr uint64_t kHome = uint64_t{1} << 40;

Range Steps(uint64_t first, uint64_t count) { return {first * kVirtualStep, count * kVirtualStep}; }

TEST(VirtualRangesTest, AMappingEndsAndItsMemoryStaysWhereItWas) {
  VirtualRanges ranges;
  ranges.Reserve(Steps(4, 8));
  const Id one = ranges.Create(2 * kVirtualStep, 0, kHome, 7);
  EXPECT_EQ(ranges.Map(Steps(4, 2), one), MapAnswer::kMapped);
  EXPECT_EQ(ranges.At(one).place, kHome);
  ranges.Moved(one, 4 * kVirtualStep, false);
  Memory gone;
  EXPECT_FALSE(ranges.Unmap(one, &gone));
  EXPECT_EQ(ranges.LyingIn(Steps(5, 1), 0), std::vector<Id>{one});
  EXPECT_TRUE(ranges.LyingIn(Steps(5, 1), one).empty());
  EXPECT_TRUE(ranges.LyingIn(Steps(6, 6), 0).empty());
  EXPECT_TRUE(ranges.Find(one)->used);
  EXPECT_EQ(ranges.Find(one)->note, 7u);
}

TEST(VirtualRangesTest, MappingsThatCanNotBeAreToldApart) {
  VirtualRanges ranges;
  ranges.Reserve(Steps(4, 8));
  ranges.Reserve(Steps(12, 2));
  const Id one = ranges.Create(2 * kVirtualStep, 0, kHome, 0);
  EXPECT_EQ(ranges.Map(Steps(4, 1), one), MapAnswer::kPartOfMemory);
  EXPECT_EQ(ranges.Map(Steps(4, 3), one), MapAnswer::kInvalid);
  EXPECT_EQ(ranges.Map(Steps(3, 2), one), MapAnswer::kInvalid);
  EXPECT_EQ(ranges.Map(Steps(11, 2), one), MapAnswer::kInvalid) << "of two reservations";
  EXPECT_EQ(ranges.Map(Steps(4, 2), one + 1), MapAnswer::kInvalid);
  EXPECT_EQ(ranges.Map({4 * kVirtualStep + 1, 2 * kVirtualStep}, one), MapAnswer::kInvalid);
  EXPECT_EQ(ranges.Map({4 * kVirtualStep, 0}, one), MapAnswer::kInvalid);
  EXPECT_EQ(ranges.Map({~uint64_t{0} << 21, 2 * kVirtualStep}, one), MapAnswer::kInvalid);
  EXPECT_EQ(ranges.Map(Steps(4, 2), one), MapAnswer::kMapped);
  EXPECT_EQ(ranges.Map(Steps(6, 2), one), MapAnswer::kSecondMapping);
  EXPECT_EQ(ranges.Map(Steps(5, 2), one), MapAnswer::kInvalid) << "it overlaps";
  EXPECT_FALSE(ranges.Unreserve(Steps(4, 8)));
  EXPECT_FALSE(ranges.Unreserve(Steps(12, 1)));
  EXPECT_TRUE(ranges.Unreserve(Steps(12, 2)));
}

// The same rules, written for single steps of few addresses.
class Model {
 public:
  static constexpr uint64_t kSteps = 24;
  struct Known {
    uint64_t steps = 0;
    unsigned handles = 1;
    uint64_t mapping = 0;  // 0: none
  };
  std::array<int, kSteps + 1> reserved{};  // the reservation's first step
  std::array<Id, kSteps + 1> mapped{};     // what is mapped in a step
  std::map<Id, Known> memories;

  bool Free(uint64_t first, uint64_t count) const {
    for (uint64_t i = first; i < first + count; ++i) {
      if (i > kSteps || reserved[i] != 0) return false;
    }
    return true;
  }
  bool CanMap(uint64_t first, uint64_t count, Id id) const {
    const auto memory = memories.find(id);
    if (memory == memories.end() || memory->second.handles == 0) return false;
    if (memory->second.mapping != 0 || memory->second.steps != count) return false;
    for (uint64_t i = first; i < first + count; ++i) {
      if (i > kSteps || reserved[i] == 0 || reserved[i] != reserved[first] || mapped[i] != 0)
        return false;
    }
    return true;
  }
  std::vector<Id> MappedIn(uint64_t first, uint64_t count) const {
    std::vector<Id> ids;
    for (uint64_t i = first; i < first + count; ++i) {
      if (i > kSteps || mapped[i] == 0) return {};
      if (ids.empty() || ids.back() != mapped[i]) ids.push_back(mapped[i]);
    }
    for (const Id id : ids) {
      const Known& memory = memories.at(id);
      if (memory.mapping < first || memory.mapping + memory.steps > first + count) return {};
    }
    return ids;
  }
  void Forget(Id id) {
    Known& memory = memories.at(id);
    if (memory.handles == 0 && memory.mapping == 0) memories.erase(id);
  }
};

class Walk {
 public:
  explicit Walk(uint64_t seed) : random_(seed) {}

  void Step() {
    const uint64_t first = random_.In(1, Model::kSteps), count = random_.In(1, 4);
    switch (random_.In(0, 6)) {
      case 0:
        return Reserve(first, random_.In(1, 10));
      case 1:
        return Unreserve(first, random_.In(1, 10));
      case 2:
        return Create(count);
      case 3:
        return Release(Any());
      case 4:
        return Map(first, count, Any());
      case 5:
        return Unmap(first, count);
      default:
        return Retain(first);
    }
  }

 private:
  Id Any() { return random_.In(last_ > 12 ? last_ - 12 : 1, last_ + 1); }

  void Reserve(uint64_t first, uint64_t count) {
    if (!model_.Free(first, count)) return;
    ranges_.Reserve(Steps(first, count));
    for (uint64_t i = first; i < first + count; ++i) model_.reserved[i] = static_cast<int>(first);
  }
  void Unreserve(uint64_t first, uint64_t count) {
    bool can =
        first + count - 1 <= Model::kSteps && model_.reserved[first] == static_cast<int>(first);
    for (uint64_t i = first; can && i < first + count; ++i)
      can = model_.reserved[i] == static_cast<int>(first) && model_.mapped[i] == 0;
    if (can && first + count <= Model::kSteps)
      can = model_.reserved[first + count] != static_cast<int>(first);
    ASSERT_EQ(ranges_.Unreserve(Steps(first, count)), can);
    for (uint64_t i = first; can && i < first + count; ++i) model_.reserved[i] = 0;
  }
  void Create(uint64_t count) {
    last_ = ranges_.Create(count * kVirtualStep, 0, kHome + last_ * 8 * kVirtualStep, 0);
    model_.memories[last_].steps = count;
  }
  void Release(Id id) {
    const auto known = model_.memories.find(id);
    const bool is_handle = known != model_.memories.end() && known->second.handles != 0;
    bool unused = false;
    Memory gone;
    ASSERT_EQ(ranges_.Release(id, &unused, &gone), is_handle);
    if (!is_handle) return;
    --known->second.handles;
    ASSERT_EQ(unused, known->second.handles == 0 && known->second.mapping == 0);
    model_.Forget(id);
  }
  void Map(uint64_t first, uint64_t count, Id id) {
    const bool can = model_.CanMap(first, count, id);
    ASSERT_EQ(ranges_.Map(Steps(first, count), id) == MapAnswer::kMapped, can);
    if (!can) return;
    for (uint64_t i = first; i < first + count; ++i) model_.mapped[i] = id;
    model_.memories[id].mapping = first;
    if (ranges_.At(id).place == first * kVirtualStep) return;
    for (const Id guest : ranges_.LyingIn(Steps(first, count), id)) {
      ASSERT_NE(ranges_.At(guest).place, ranges_.At(guest).mapping) << "what is mapped lies there";
      ranges_.Moved(guest, kHome / 2 + ++moves_ * 8 * kVirtualStep, true);
    }
    ranges_.Moved(id, first * kVirtualStep, false);
  }
  void Unmap(uint64_t first, uint64_t count) {
    const std::vector<Id> ids = model_.MappedIn(first, count);
    ASSERT_EQ(ranges_.MappedIn(Steps(first, count)), ids);
    for (const Id id : ids) {
      Memory gone;
      ASSERT_EQ(ranges_.Unmap(id, &gone), model_.memories[id].handles == 0);
      std::replace(model_.mapped.begin(), model_.mapped.end(), id, Id{0});
      model_.memories[id].mapping = 0;
      model_.Forget(id);
    }
  }
  void Retain(uint64_t first) {
    const Id id = model_.mapped[first];
    ASSERT_EQ(ranges_.Retain(first * kVirtualStep + 77), id);
    if (id != 0) ++model_.memories[id].handles;
  }

  Random random_;
  VirtualRanges ranges_;
  Model model_;
  Id last_ = 0;
  uint64_t moves_ = 0;
};

TEST(VirtualRangesTest, RandomCallsAreAnsweredAsByThePlainModel) {
  const uint64_t seed = harness::Seed();
  Walk walk(seed);
  for (uint64_t i = 0; i < harness::Events(100'000, 20'000); ++i) {
    walk.Step();
    ASSERT_FALSE(HasFatalFailure()) << "at call " << i;
  }
}

TEST(VirtualRangesTest, ADeviceTakesItsMemoryWithIt) {
  VirtualRanges ranges;
  ranges.Reserve(Steps(1, 8));
  const Id one = ranges.Create(kVirtualStep, 0, kHome, 0);
  const Id other = ranges.Create(kVirtualStep, 1, kHome + kVirtualStep, 0);
  ASSERT_EQ(ranges.Map(Steps(1, 1), one), MapAnswer::kMapped);
  ASSERT_EQ(ranges.Map(Steps(2, 1), other), MapAnswer::kMapped);
  std::vector<Memory> gone;
  ranges.ForgetDevice(0, &gone);
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].mapping, kVirtualStep);
  EXPECT_EQ(ranges.MappedAt(kVirtualStep), 0u);
  EXPECT_EQ(ranges.MappedAt(2 * kVirtualStep), other);
  EXPECT_EQ(ranges.Find(one), nullptr);
}

}  // namespace
}  // namespace shim_arena_test
