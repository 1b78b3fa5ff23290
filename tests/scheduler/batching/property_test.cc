// Random events in each mode against the model in world.h.
#include <gtest/gtest.h>

#include "tests/harness/events.h"
#include "tests/harness/seed.h"
#include "tests/scheduler/batching/world.h"

namespace scheduler::batching::iteration {
namespace {

constexpr uint64_t kEventsPerWorld = 600;

World::Plan RandomPlan(const std::string& mode, uint64_t seed) {
  World::Plan plan;
  plan.mode = mode;
  plan.options.order = static_cast<Order>(seed % 3);
  plan.options.aging_us = 50'000;
  plan.options.context_max = 90;
  plan.options.queue_requests_max = 12;
  plan.options.queue_tokens_max = 2'000;
  plan.options.answers_max = static_cast<int32_t>(1 + seed / 3 % 8);
  plan.options.tokens_max = plan.options.answers_max + static_cast<int32_t>(seed / 7 % 40);
  plan.options.steps_in_flight_max = static_cast<int32_t>(1 + seed / 5 % 3);
  plan.options.ahead =
      mode == "budget" && plan.options.steps_in_flight_max == 2 && seed / 17 % 2 == 0;
  plan.options.watermark_blocks = static_cast<int32_t>(seed / 11 % 3);
  plan.options.hash_seed = seed;
  plan.blocks_max = static_cast<int32_t>(4 + seed / 13 % 30);
  plan.losses = seed % 2 == 0;
  return plan;
}

class BatchingPropertyTest : public ::testing::TestWithParam<std::string> {};

TEST_P(BatchingPropertyTest, RandomEvents) {
  uint64_t seed = harness::Seed();
  for (uint64_t events = 0; events < harness::Events(250'000, 20'000); ++seed) {
    World world(RandomPlan(GetParam(), seed), seed);
    try {
      while (world.events() < kEventsPerWorld) {
        for (int step = 0; step < 100; ++step) world.Step();
        world.ComeToRest();
      }
    } catch (const std::logic_error& error) {
      FAIL() << error.what() << " at event " << world.events() << " of seed " << seed;
    }
    events += world.events();
  }
}

TEST_P(BatchingPropertyTest, TheSameEventsGetTheSameActions) {
  const uint64_t seed = harness::Seed();
  for (uint64_t round = 0; round < 4; ++round) {
    World one(RandomPlan(GetParam(), seed + round), seed + round);
    World other(RandomPlan(GetParam(), seed + round), seed + round);
    while (one.events() < kEventsPerWorld) {
      one.Step();
      other.Step();
      ASSERT_EQ(one.digest(), other.digest()) << "at event " << one.events();
    }
  }
}

// An urgent flood: as many urgent requests as the queue takes, all the time. A request of a later
// class begins before every request that comes when it has waited for its classes' aging.
TEST_P(BatchingPropertyTest, AnUrgentFloodPassesWithinTheAgingOnly) {
  const uint64_t seed = harness::Seed();
  World::Plan plan = RandomPlan(GetParam(), seed);
  plan.options.order = Order::kPriority;
  plan.options.queue_requests_max = 1'000;
  plan.options.queue_tokens_max = 1'000'000;
  plan.blocks_min = 8;
  plan.blocks_max = 30;
  plan.losses = plan.cancels = plan.copies = false;
  World world(plan, seed);
  Arrived urgent;
  urgent.tokens.assign(20, 1);
  urgent.new_max = 8;
  urgent.priority = 0;
  Arrived patient = urgent;
  patient.priority = 2;
  for (int i = 0; i < 30; ++i) world.Arrive(urgent);
  const RequestId waits = world.Arrive(patient);
  const int64_t aged_us = world.now_us() + 2 * plan.options.aging_us;
  bool begun = false;
  for (int round = 0; round < 4'000 && !begun; ++round) {
    world.PassTime(1'000);
    if (round % 2 == 0) world.Arrive(urgent);
    world.FinishStep();
    if (!world.answers().contains({waits, 0})) break;
    begun = world.answers().at({waits, 0}).begun_us >= 0;
    for (const std::pair<const World::AnswerId, World::Answer>& each : world.answers()) {
      ASSERT_TRUE(begun || each.second.begun_us < 0 || each.second.arrived_us <= aged_us)
          << "request " << each.first.first << " passed";
    }
  }
  EXPECT_TRUE(begun);
  world.ComeToRest();
}

INSTANTIATE_TEST_SUITE_P(Modes, BatchingPropertyTest, ::testing::ValuesIn(ModeNames()),
                         [](const ::testing::TestParamInfo<std::string>& info) {
                           return info.param;
                         });

}  // namespace
}  // namespace scheduler::batching::iteration
