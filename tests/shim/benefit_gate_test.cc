#include "shim/benefit_gate.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "tests/harness/seed.h"

namespace shim {
namespace {

using State = BenefitGate::State;

constexpr uint32_t kComparison = 2 * BenefitGate::kPairs * BenefitGate::kBlock;

// A program whose iterations take so long either way.
struct Program {
  double forwarded_ns = 1e6, replayed_ns = 1e6;
  uint64_t repeated = 10;
};

void Iterate(
    BenefitGate* gate, const Program& program, uint32_t iterations,
    const std::function<double()>& noise = [] { return 1.0; }) {
  for (uint32_t i = 0; i < iterations; ++i) {
    const double ns = gate->replays() ? program.replayed_ns : program.forwarded_ns;
    gate->OnIteration({static_cast<int64_t>(ns * noise()), gate->replays() ? program.repeated : 0});
  }
}

TEST(BenefitGateTest, ReplaysWhereThatIsFaster) {
  BenefitGate gate;
  Iterate(&gate, {.replayed_ns = 0.7e6}, BenefitGate::kLearn);
  EXPECT_EQ(gate.state(), State::kComparing);
  Iterate(&gate, {.replayed_ns = 0.7e6}, kComparison);
  EXPECT_EQ(gate.state(), State::kReplaying);
  EXPECT_TRUE(gate.replays());
  EXPECT_NEAR(gate.ratio(), 0.7, 0.001);
}

TEST(BenefitGateTest, ForwardsWhereReplayIsSlowerOrTheSame) {
  for (const double replayed_ns : {0.99e6, 1.0e6, 1.5e6}) {
    BenefitGate gate;
    Iterate(&gate, {.replayed_ns = replayed_ns}, BenefitGate::kLearn + kComparison);
    EXPECT_EQ(gate.state(), State::kForwarding) << replayed_ns;
    EXPECT_FALSE(gate.replays());
  }
}

TEST(BenefitGateTest, BetweenTheTwoBarsTheWayStays) {
  BenefitGate gate;
  Iterate(&gate, {.replayed_ns = 0.9e6}, BenefitGate::kLearn + kComparison);
  Iterate(&gate, {.replayed_ns = 0.99e6}, BenefitGate::kFirstRest + kComparison);
  EXPECT_EQ(gate.state(), State::kReplaying);
  Iterate(&gate, {.replayed_ns = 1.01e6}, 2 * BenefitGate::kFirstRest + kComparison);
  EXPECT_EQ(gate.state(), State::kForwarding);
}

TEST(BenefitGateTest, NothingRepeatsIsNoVerdictOnTime) {
  BenefitGate gate;
  Iterate(&gate, {.replayed_ns = 0.5e6, .repeated = 0}, BenefitGate::kLearn + kComparison);
  EXPECT_EQ(gate.state(), State::kForwarding);
  EXPECT_EQ(gate.ratio(), 0);
  Iterate(&gate, {.replayed_ns = 0.5e6}, BenefitGate::kShortRest + kComparison);
  EXPECT_EQ(gate.state(), State::kReplaying);
}

TEST(BenefitGateTest, ComparesEverMoreRarely) {
  BenefitGate gate;
  Iterate(&gate, {.replayed_ns = 2e6}, BenefitGate::kLearn);
  uint32_t compared = 0;
  constexpr uint32_t kIterations = 200'000;
  for (uint32_t i = 0; i < kIterations; ++i) {
    compared += gate.state() == State::kComparing ? 1 : 0;
    Iterate(&gate, {.replayed_ns = 2e6}, 1);
  }
  EXPECT_LE(compared, 9 * kComparison);
  EXPECT_GE(compared, 7 * kComparison);
}

// The detector took single kernels for iterations at first, and these gain nothing.
TEST(BenefitGateTest, ANewBodyIsLearnedAndComparedByItself) {
  for (uint32_t before = 0; before < 400; before += 7) {
    BenefitGate gate;
    Iterate(&gate, {.replayed_ns = 3e6, .repeated = 0}, before);
    gate.OnNewBody();
    Iterate(&gate, {.replayed_ns = 0.7e6}, BenefitGate::kLearn + kComparison - 1);
    ASSERT_EQ(gate.state(), State::kComparing) << before;
    Iterate(&gate, {.replayed_ns = 0.7e6}, 1);
    ASSERT_EQ(gate.state(), State::kReplaying) << before;
    ASSERT_NEAR(gate.ratio(), 0.7, 0.001) << before;
  }
}

TEST(BenefitGateTest, ANewBodyTurnsNoVerdict) {
  BenefitGate gate;
  Iterate(&gate, {.replayed_ns = 2e6}, BenefitGate::kLearn + kComparison);
  gate.OnNewBody();
  EXPECT_EQ(gate.state(), State::kForwarding);
}

TEST(BenefitGateTest, AProgramWithEverNewBodiesIsComparedAllTheSame) {
  BenefitGate gate;
  for (uint32_t i = 0; i < BenefitGate::kNewBodiesMax + BenefitGate::kLearn + kComparison; ++i) {
    gate.OnNewBody();
    Iterate(&gate, {.replayed_ns = 0.7e6}, 1);
  }
  EXPECT_EQ(gate.state(), State::kReplaying);
}

TEST(BenefitGateTest, AVerdictThatIsTakenOverHoldsFromEveryState) {
  for (const uint32_t before :
       {0u, 3u, BenefitGate::kLearn + 3, BenefitGate::kLearn + kComparison}) {
    for (const bool replays : {false, true}) {
      BenefitGate gate;
      Iterate(&gate, {}, before);
      gate.TakeVerdict(replays, 0.5);
      for (uint32_t i = 1; i < BenefitGate::kFirstRest; ++i) {
        Iterate(&gate, {}, 1);
        ASSERT_EQ(gate.state(), replays ? State::kReplaying : State::kForwarding);
        ASSERT_EQ(gate.replays(), replays);
      }
      EXPECT_EQ(gate.ratio(), 0.5);
      Iterate(&gate, {}, 1);
      EXPECT_EQ(gate.state(), State::kComparing);
    }
  }
}

// Noise of a fifth, which hits neighbouring iterations alike, and pauses of ten times an iteration.
TEST(BenefitGateTest, NoiseDoesNotTurnTheVerdict) {
  std::mt19937_64 random(harness::Seed());
  for (const double replayed_ns : {0.7e6, 1.4e6}) {
    uint32_t right = 0;
    constexpr uint32_t kTrials = 500;
    for (uint32_t trial = 0; trial < kTrials; ++trial) {
      BenefitGate gate;
      Iterate(&gate, {.replayed_ns = replayed_ns}, BenefitGate::kLearn + kComparison, [&] {
        if (random() % 20 == 0) return 10.0;
        return std::uniform_real_distribution<>(0.9, 1.1)(random);
      });
      right += gate.replays() == (replayed_ns < 1e6);
    }
    EXPECT_GE(right, kTrials * 98 / 100) << replayed_ns;
  }
}

}  // namespace
}  // namespace shim
