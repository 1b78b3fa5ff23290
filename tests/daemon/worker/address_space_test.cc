// AddressSpace against a brute-force map of every unit, on random calls from a printed seed.
#include "daemon/worker/address_space.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "tests/harness/seed.h"

namespace worker {
namespace {

constexpr uint64_t kBase = 1 << 20;
constexpr uint64_t kUnits = 256;

// The lowest aligned place where `units` units are free, by looking at each.
std::optional<uint64_t> Lowest(const std::vector<bool>& taken, uint64_t units, uint64_t alignment) {
  for (uint64_t at = 0; at + units <= taken.size(); ++at) {
    if ((kBase + at) % alignment != 0) continue;
    bool free = true;
    for (uint64_t i = 0; i < units; ++i) free = free && !taken[at + i];
    if (free) return kBase + at;
  }
  return std::nullopt;
}

TEST(AddressSpace, IsFirstFitOnRandomCalls) {
  std::mt19937_64 random(harness::Seed());
  AddressSpace space(kBase, kUnits);
  std::vector<bool> taken(kUnits, false);
  std::map<uint64_t, uint64_t> live;
  for (int round = 0; round < 20'000; ++round) {
    if (random() % 2 == 0 || live.empty()) {
      const uint64_t units = 1 + random() % 40;
      const uint64_t alignment = uint64_t{1} << random() % 6;
      const std::optional<uint64_t> expected = Lowest(taken, units, alignment);
      ASSERT_EQ(space.Take(units, alignment), expected);
      if (!expected.has_value()) continue;
      live[*expected] = units;
      for (uint64_t i = 0; i < units; ++i) taken[*expected - kBase + i] = true;
    } else {
      std::map<uint64_t, uint64_t>::iterator it = live.begin();
      std::advance(it, random() % live.size());
      space.Give(it->first, it->second);
      for (uint64_t i = 0; i < it->second; ++i) taken[it->first - kBase + i] = false;
      live.erase(it);
    }
    uint64_t free = 0;
    for (bool unit : taken) free += !unit;
    ASSERT_EQ(space.free_bytes(), free);
  }
}

TEST(AddressSpace, MergesNeighbours) {
  AddressSpace space(kBase, 30);
  const std::optional<uint64_t> a = space.Take(10, 1), b = space.Take(10, 1), c = space.Take(10, 1);
  ASSERT_TRUE(a && b && c);
  EXPECT_FALSE(space.Take(1, 1).has_value());
  space.Give(*a, 10);
  space.Give(*c, 10);
  EXPECT_FALSE(space.Take(11, 1).has_value());
  space.Give(*b, 10);
  EXPECT_EQ(space.Take(30, 1), a);
}

}  // namespace
}  // namespace worker
