// Every mix of four requests of a few sizes on six blocks, in each mode, in the world of world.h.
#include <gtest/gtest.h>

#include <set>

#include "tests/harness/events.h"
#include "tests/scheduler/batching/world.h"

namespace scheduler::batching::iteration {
namespace {

constexpr int kRequests = 4;
constexpr size_t kPrompts[] = {1, 16, 33, 80};
constexpr int32_t kAnswers[] = {1, 18};
constexpr int kKinds = 8;

class ExhaustiveTest : public ::testing::TestWithParam<std::string> {
 protected:
  // The kinds of the requests are the digits of `mix`. Two are there at once, the others come after
  // a step each.
  static void Run(const World::Plan& plan, int mix) {
    World world(plan, static_cast<uint64_t>(mix));
    for (int number = 0; number < kRequests; ++number, mix /= kKinds) {
      Arrived about;
      about.tokens.assign(kPrompts[mix % 4], number % 2);
      about.new_max = kAnswers[mix % kKinds / 4];
      world.Arrive(about);
      world.PassTime(1);
      if (number > 0) world.FinishStep();
    }
    world.ComeToRest();
    ASSERT_EQ(world.finished().size(), static_cast<size_t>(kRequests));
    std::set<World::AnswerId> begun;
    for (const std::vector<World::AnswerId>& step : world.steps()) {
      for (const World::AnswerId& answer : step) {
        if (!begun.insert(answer).second) continue;
        ASSERT_EQ(*begun.rbegin(), answer) << "a later request began before";
      }
    }
  }
};

TEST_P(ExhaustiveTest, EveryMixEndsAndBeginsByArrival) {
  World::Plan plan;
  plan.mode = GetParam();
  plan.options.answers_max = 3;
  plan.options.tokens_max = 24;
  plan.options.context_max = 200;
  plan.options.watermark_blocks = 1;
  plan.blocks_min = plan.blocks_max = 6;
  int mixes = 1;
  for (int i = 0; i < kRequests; ++i) mixes *= kKinds;
  // Under a sanitizer every seventh, which has no factor in common with kKinds.
  for (int mix = 0; mix < mixes; mix += harness::kSanitized ? 7 : 1) {
    try {
      Run(plan, mix);
    } catch (const std::logic_error& error) {
      FAIL() << error.what() << " in mix " << mix;
    }
    ASSERT_FALSE(HasFatalFailure()) << "in mix " << mix;
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, ExhaustiveTest, ::testing::ValuesIn(ModeNames()),
                         [](const ::testing::TestParamInfo<std::string>& info) {
                           return info.param;
                         });

}  // namespace
}  // namespace scheduler::batching::iteration
