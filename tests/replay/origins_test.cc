#include "replay/origins.h"

#include <gtest/gtest.h>

#include <random>

namespace replay {
namespace {

constexpr OriginSet kP = 1, kQ = 2;

TEST(OriginsTest, AnAddressPlusANumberIsThatAddress) {
  EXPECT_EQ(Origins::Of(kP).Plus(Origins::Number()), Origins::Of(kP));
}

TEST(OriginsTest, TheSumOfTwoIsOneAlternativeAndTheChoiceIsTwo) {
  const Origins sum = Origins::Of(kP).Plus(Origins::Of(kQ));
  EXPECT_EQ(sum.alternatives(), std::vector<OriginSet>({kP | kQ}));
  Origins choice = Origins::Of(kP);
  EXPECT_TRUE(choice.Join(Origins::Of(kQ)));
  EXPECT_EQ(choice.alternatives(), std::vector<OriginSet>({kP, kQ}));
  EXPECT_FALSE(choice.Join(Origins::Of(kQ)));
}

TEST(OriginsTest, AnAlternativeThatAsksForLessIsGoneWhereASmallerOneIs) {
  Origins value = Origins::Of(kP).Plus(Origins::Of(kQ));
  value.Join(Origins::Of(kP));
  EXPECT_EQ(value.alternatives(), std::vector<OriginSet>({kP}));
  EXPECT_EQ(value.touched(), kP | kQ);
}

TEST(OriginsTest, AScaledAddressIsANumberThatItsBitsWentInto) {
  const Origins scaled = Origins::Of(kP).Scaled();
  EXPECT_EQ(scaled.alternatives(), std::vector<OriginSet>({0}));
  EXPECT_EQ(scaled.touched(), kP);
}

TEST(OriginsTest, NothingComesOfWhatHasNotCome) {
  EXPECT_TRUE(Origins().Plus(Origins::Of(kP)).bottom());
  EXPECT_TRUE(Origins().Scaled().bottom());
}

TEST(OriginsTest, TooManyChoicesAreUnknown) {
  Origins value;
  for (int k = 0; k < 9; ++k) value.Join(Origins::Of(OriginSet{1} << k));
  EXPECT_TRUE(value.unknown());
  EXPECT_TRUE(value.Plus(Origins::Number()).unknown());
}

// The lattice: joining is monotone in either operand, and so are sums, or the fixed point would
// depend on the order.
TEST(OriginsTest, JoinsAndSumsAreMonotone) {
  std::mt19937_64 random(1);
  const auto any = [&] {
    Origins value;
    for (uint64_t k = random() % 4; k > 0; --k) value.Join(Origins::Of(random() % 16));
    return value;
  };
  const auto below = [](Origins low, const Origins& high) {
    Origins joined = high;
    return !joined.Join(low);
  };
  for (int round = 0; round < 20000; ++round) {
    const Origins a = any(), b = any();
    Origins larger = a;
    larger.Join(any());
    EXPECT_TRUE(below(a, larger));
    EXPECT_TRUE(below(a.Plus(b), larger.Plus(b)));
    EXPECT_TRUE(below(a.Scaled(), larger.Scaled()));
    EXPECT_EQ(a.Plus(b), b.Plus(a));
  }
}

}  // namespace
}  // namespace replay
