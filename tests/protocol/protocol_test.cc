// Worlds from a printed seed keep what they promise.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/harness/events.h"
#include "tests/protocol/episodes.h"

namespace protocol {
namespace {

constexpr uint64_t kSteps = harness::kSanitized ? 60'000 : 1'600'000;

class SeedsTest : public testing::TestWithParam<uint64_t> {};

void ExpectPromisesKept(const Disturbances& disturbances, uint64_t usual_seed) {
  const char* const given = std::getenv("LANEWAY_TEST_SEED");
  const uint64_t seed = given == nullptr ? usual_seed : std::strtoull(given, nullptr, 10);
  std::printf("seed %lu (another one: LANEWAY_TEST_SEED)\n", static_cast<unsigned long>(seed));
  const Finding finding = Explore(disturbances, seed, harness::Events(kSteps));
  EXPECT_EQ(finding.failure, "") << "protocol_world --seed " << seed << " --steps " << finding.steps
                                 << " --disturb " << NamesOf(disturbances);
}

TEST_P(SeedsTest, WorldsKeepTheirPromises) { ExpectPromisesKept(kTested, GetParam()); }

TEST(KeepersTest, WorldsWithLostKeepersKeepTheirPromises) { ExpectPromisesKept(kKeepers, 1); }

TEST(UpgradesTest, WorldsWithUpgradesAndLostWorkersKeepTheirPromises) {
  ExpectPromisesKept(kUpgraded, 1);
}

TEST(DaemonsTest, WorldsWithLostDaemonsKeepTheirPromises) { ExpectPromisesKept(kDaemons, 1); }

TEST(InProcessTest, WorldsWithProgramsInProcessKeepTheirPromises) {
  ExpectPromisesKept(kInProcess, 1);
}

TEST(AllTest, WorldsWithAllDisturbancesKeepTheirPromises) { ExpectPromisesKept(kAll, 1); }

INSTANTIATE_TEST_SUITE_P(Quarter, SeedsTest, testing::Range<uint64_t>(1, 5));

}  // namespace
}  // namespace protocol
