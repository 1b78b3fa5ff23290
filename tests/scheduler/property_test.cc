// A million random events per policy against the model in world.h.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/harness/events.h"
#include "tests/harness/seed.h"
#include "tests/scheduler/world.h"

namespace scheduler {
namespace {

constexpr uint64_t kEventsPerWorld = 2'500;

World::Options Random(const std::string& policy, uint64_t seed) {
  World::Options options;
  options.policy = policy;
  options.devices = 1 + seed % 2;
  options.users = 1 + seed / 2 % 3;
  options.tenants_max = 4 + seed / 8 % 20;
  options.gangs = seed / 16 % 2 == 0;
  return options;
}

class PropertyTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PropertyTest, RandomEvents) {
  uint64_t seed = harness::Seed();
  for (uint64_t events = 0; events < harness::Events(1'000'000, 50'000); ++seed) {
    World world(Random(GetParam(), seed), seed);
    try {
      while (world.events() < kEventsPerWorld) {
        for (int step = 0; step < 100; ++step) world.Step();
        world.ComeToRest();
      }
      world.AllLeave();
    } catch (const std::logic_error& error) {
      FAIL() << error.what() << " at event " << world.events() << " of seed " << seed
             << world.Describe();
    }
    events += world.events();
  }
}

TEST_P(PropertyTest, TheSameEventsGetTheSameActions) {
  const uint64_t seed = harness::Seed();
  for (uint64_t round = 0; round < 4; ++round) {
    World one(Random(GetParam(), seed + round), seed + round);
    World other(Random(GetParam(), seed + round), seed + round);
    while (one.events() < kEventsPerWorld) {
      one.Step();
      other.Step();
      ASSERT_EQ(one.digest(), other.digest()) << "at event " << one.events();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, PropertyTest,
                         ::testing::Values("fifo", "srtf", "pack", "fair", "rr", "priority", "edf",
                                           "shares"),
                         [](const ::testing::TestParamInfo<std::string>& info) {
                           return info.param;
                         });

}  // namespace
}  // namespace scheduler
