// What several stages tell while they load, as one engine's state.
#include "serve/llm/generation/stage_states.h"

#include <gtest/gtest.h>

namespace serve::llm {
namespace {

constexpr Ready kReady = {40, 512, 131, 8, 1};

TEST(StageStatesTest, ProgressIsOfAllStages) {
  StageStates states(2);
  EXPECT_TRUE(states.OnProgress(1, {10, 100}));
  EXPECT_TRUE(states.OnProgress(0, {5, 50}));
  EXPECT_TRUE(states.OnProgress(1, {20, 100}));
  EXPECT_EQ(states.progress().done, 25u);
  EXPECT_EQ(states.progress().of, 150u);
}

TEST(StageStatesTest, TheEngineIsReadyWithItsLastStage) {
  StageStates states(3);
  Ready fewer = kReady;
  fewer.blocks = 30;
  EXPECT_TRUE(states.OnReady(2, kReady));
  EXPECT_FALSE(states.ready().has_value());
  EXPECT_TRUE(states.OnReady(0, fewer));
  EXPECT_FALSE(states.ready().has_value());
  EXPECT_TRUE(states.OnReady(1, kReady));
  ASSERT_TRUE(states.ready().has_value());
  EXPECT_EQ(states.ready()->blocks, 30);
  EXPECT_EQ(states.ready()->width_columns, 8);
}

TEST(StageStatesTest, StagesOfDifferentEnginesAreRefused) {
  for (int32_t Ready::*const field :
       {&Ready::context_max, &Ready::vocabulary, &Ready::width_columns}) {
    StageStates states(2);
    Ready other = kReady;
    ++(other.*field);
    EXPECT_TRUE(states.OnReady(0, kReady));
    EXPECT_FALSE(states.OnReady(1, other));
  }
}

TEST(StageStatesTest, AReadyStageLoadsNothing) {
  StageStates states(2);
  EXPECT_TRUE(states.OnReady(0, kReady));
  EXPECT_FALSE(states.OnReady(0, kReady));
  EXPECT_FALSE(states.OnProgress(0, {1, 2}));
  EXPECT_TRUE(states.OnProgress(1, {1, 2}));
}

}  // namespace
}  // namespace serve::llm
