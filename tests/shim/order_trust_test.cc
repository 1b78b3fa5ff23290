// An order that the worker has holds for each repeat that comes without taking it back.
#include "shim/order_trust.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/harness/seed.h"

namespace shim {
namespace {

using Facts = OrderTrust::Facts;

// How many repeats it takes until a chunk is looked at.
uint32_t RepeatsUntilALook(OrderTrust* trust, uint32_t chunk, const Facts& now) {
  for (uint32_t repeats = 1; repeats < 100'000; ++repeats) {
    if (trust->OnRepeat(chunk, now).look) return repeats;
  }
  return 0;
}

TEST(OrderTrustTest, AChunkIsLookedAtOnce) {
  OrderTrust trust;
  EXPECT_EQ(RepeatsUntilALook(&trust, 0, {}), OrderTrust::kPatience);
  EXPECT_EQ(RepeatsUntilALook(&trust, 8, {}), OrderTrust::kPatience) << "each for itself";
  EXPECT_EQ(RepeatsUntilALook(&trust, 0, {}), 0u);
}

TEST(OrderTrustTest, ChangedFactsTakeOrdersBack) {
  OrderTrust trust;
  EXPECT_TRUE(trust.MayGive(trust.epoch(), 5, {.version = 5}));
  EXPECT_FALSE(trust.OnRepeat(0, {.version = 5}).take_back);
  EXPECT_TRUE(trust.OnRepeat(0, {.version = 6}).take_back);
  EXPECT_FALSE(trust.OnRepeat(0, {.version = 6}).take_back) << "the worker has none any more";
  EXPECT_EQ(RepeatsUntilALook(&trust, 8, {.version = 6}), 2 * OrderTrust::kPatience);
}

TEST(OrderTrustTest, AnotherWorkerHasNoOrders) {
  OrderTrust trust;
  EXPECT_TRUE(trust.MayGive(trust.epoch(), 0, {.worker = 1}));
  EXPECT_TRUE(trust.OnRepeat(0, {.worker = 2}).take_back);
  EXPECT_EQ(RepeatsUntilALook(&trust, 8, {.worker = 2}), 2 * OrderTrust::kPatience);
}

TEST(OrderTrustTest, AProofOfOtherFactsIsNotGiven) {
  OrderTrust trust;
  EXPECT_FALSE(trust.MayGive(trust.epoch(), 5, {.version = 6}));
  EXPECT_TRUE(trust.MayGive(trust.epoch(), 6, {.version = 6}));
  // The next repeat would see version 7 alone, and believe the order of version 6.
  EXPECT_FALSE(trust.MayGive(trust.epoch(), 7, {.version = 7}));
  EXPECT_TRUE(trust.OnRepeat(0, {.version = 7}).take_back);
  EXPECT_TRUE(trust.MayGive(trust.epoch(), 7, {.version = 7}));
}

TEST(OrderTrustTest, AProofOfForgottenChunksIsNotGiven) {
  OrderTrust trust;
  const uint64_t epoch = trust.epoch();
  EXPECT_FALSE(trust.OnForget());
  EXPECT_FALSE(trust.MayGive(epoch, 0, {}));
  EXPECT_TRUE(trust.MayGive(trust.epoch(), 0, {}));
  EXPECT_TRUE(trust.OnForget());
  EXPECT_FALSE(trust.OnForget());
}

TEST(OrderTrustTest, PatienceHasAnEnd) {
  OrderTrust trust;
  uint64_t version = 0;
  for (int i = 0; i < 40; ++i, ++version) trust.MayGive(trust.epoch(), version, {version + 1, 0});
  EXPECT_EQ(RepeatsUntilALook(&trust, 0, {version, 0}), OrderTrust::kPatienceMax);
}

// A worker that is told what the trust says never repeats by an order of other facts or chunks.
TEST(OrderTrustTest, NoRepeatIsByAnOrderThatDoesNotHold) {
  std::mt19937_64 random(harness::Seed());
  for (int round = 0; round < 200; ++round) {
    OrderTrust trust;
    Facts now;
    uint64_t epoch = 0, version = 0;  // of the proof under way
    bool has_order = false;
    Facts order;
    for (int step = 0; step < 400; ++step) {
      switch (random() % 12) {
        case 0:
          ++now.version;
          break;
        case 1:
          if (random() % 8 == 0) ++now.worker, has_order = false;
          break;
        case 2:
          if (trust.OnForget()) has_order = false;
          ASSERT_FALSE(has_order);
          break;
        case 3:
        case 4:
          epoch = trust.epoch(), version = now.version;
          break;
        case 5:
        case 6:
          if (trust.MayGive(epoch, version, now)) {
            ASSERT_EQ(version, now.version);
            ASSERT_TRUE(!has_order || order == now);
            has_order = true, order = now;
          }
          break;
        default:
          if (trust.OnRepeat(static_cast<uint32_t>(random() % 3), now).take_back) has_order = false;
          ASSERT_TRUE(!has_order || order == now);
      }
    }
  }
}

}  // namespace
}  // namespace shim
