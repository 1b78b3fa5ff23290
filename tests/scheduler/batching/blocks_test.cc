#include "scheduler/batching/iteration/blocks.h"

#include <gtest/gtest.h>

#include "scheduler/batching/iteration/retry_after.h"

namespace scheduler::batching::iteration {
namespace {

const std::vector<Token> kOnes(kBlockTokens, 1);
const std::vector<Token> kTwos(kBlockTokens, 2);

TEST(BlocksTest, FreeBlocksAreTakenBeforeKeptOnes) {
  Blocks blocks(7);
  blocks.Reset(2);
  const BlockId kept = blocks.Take();
  CachedPrefix known;
  blocks.Publish(kept, kOnes, 0, &known);
  blocks.Release(kept);
  EXPECT_EQ(blocks.available(), 2);
  EXPECT_NE(blocks.Take(), kept);
  EXPECT_EQ(blocks.Match(kOnes, 0, &known).size(), 1u);
  EXPECT_EQ(blocks.Take(), kept);
  EXPECT_TRUE(blocks.Match(kOnes, 0, &known).empty());
  blocks.Check();
}

TEST(BlocksTest, TheLeastRecentlyUsedBlockIsEvictedFirst) {
  Blocks blocks(7);
  blocks.Reset(2);
  const BlockId first = blocks.Take();
  const BlockId second = blocks.Take();
  CachedPrefix one;
  blocks.Publish(first, kOnes, 0, &one);
  CachedPrefix two;
  blocks.Publish(second, kTwos, 0, &two);
  blocks.Release(first);
  blocks.Release(second);
  blocks.Reference(first);
  blocks.Release(first);
  EXPECT_EQ(blocks.Take(), second);
}

TEST(BlocksTest, APrefixIsKnownByAllTokensBeforeAndTheSalt) {
  Blocks blocks(7);
  blocks.Reset(4);
  std::vector<Token> both = kOnes;
  both.insert(both.end(), kTwos.begin(), kTwos.end());
  CachedPrefix known;
  const BlockId first = blocks.Take();
  const BlockId second = blocks.Take();
  blocks.Publish(first, kOnes, 3, &known);
  blocks.Publish(second, kTwos, 3, &known);
  CachedPrefix end;
  EXPECT_EQ(blocks.Match(both, 3, &end), (std::vector<BlockId>{first, second}));
  EXPECT_EQ(end.blocks, 2);
  EXPECT_TRUE(blocks.Match(both, 4, &end).empty());
  EXPECT_TRUE(blocks.Match(kTwos, 3, &end).empty());  // known after kOnes alone
}

TEST(BlocksTest, EqualBlocksAreKnownOnce) {
  Blocks blocks(7);
  blocks.Reset(2);
  const BlockId first = blocks.Take();
  const BlockId again = blocks.Take();
  CachedPrefix one;
  blocks.Publish(first, kOnes, 0, &one);
  CachedPrefix two;
  blocks.Publish(again, kOnes, 0, &two);
  EXPECT_EQ(one.content, two.content);
  EXPECT_FALSE(blocks.IsOwn(first));
  EXPECT_TRUE(blocks.IsOwn(again));
  blocks.Release(again);
  blocks.Release(first);
  blocks.Check();
}

TEST(RetryAfterTest, IsWaitingWorkOverTheRateOfLate) {
  RetryAfter retry;
  EXPECT_EQ(retry.Seconds(1'000'000), RetryAfter::kLeastS);
  retry.OnStep(500, 0, 1'000'000);  // 500 tokens a second
  EXPECT_EQ(retry.Seconds(5'000), 10);
  EXPECT_EQ(retry.Seconds(1), RetryAfter::kLeastS);
  EXPECT_EQ(retry.Seconds(1'000'000), RetryAfter::kMostS);
}

TEST(RetryAfterTest, ForgetsHowFastStepsOnceWere) {
  RetryAfter retry;
  retry.OnStep(1'000'000, 0, 1'000);
  for (int64_t second = 0; second < 100; ++second) {
    retry.OnStep(100, second * 1'000'000, (second + 1) * 1'000'000);
  }
  EXPECT_NEAR(static_cast<double>(retry.Seconds(2'000)), 20, 3);
}

}  // namespace
}  // namespace scheduler::batching::iteration
