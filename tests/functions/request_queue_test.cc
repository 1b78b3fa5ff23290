#include "functions/serving/request_queue.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>

namespace functions {
namespace {

TEST(RequestQueueTest, RequestsGoToTheEngineInTheirOrderOneAtATime) {
  RequestQueue queue(4);
  EXPECT_TRUE(queue.Add(7));
  EXPECT_TRUE(queue.Add(8));
  EXPECT_TRUE(queue.WantsEngine());
  EXPECT_EQ(queue.TakeNext(), std::nullopt);
  queue.OnStart();
  EXPECT_FALSE(queue.WantsEngine());
  queue.OnReady();
  EXPECT_EQ(queue.TakeNext(), 7u);
  EXPECT_EQ(queue.TakeNext(), std::nullopt);
  EXPECT_EQ(queue.OnAnswer(), 7u);
  EXPECT_EQ(queue.TakeNext(), 8u);
  EXPECT_EQ(queue.OnAnswer(), 8u);
  EXPECT_TRUE(queue.empty());
}

TEST(RequestQueueTest, OnlySoManyWait) {
  RequestQueue queue(2);
  EXPECT_TRUE(queue.Add(1));
  EXPECT_TRUE(queue.Add(2));
  EXPECT_FALSE(queue.Add(3));
}

TEST(RequestQueueTest, ARequestIsTriedTwiceThenFails) {
  RequestQueue queue(4);
  queue.OnStart();
  queue.OnReady();
  EXPECT_TRUE(queue.Add(5));
  EXPECT_TRUE(queue.Add(6));
  EXPECT_EQ(queue.TakeNext(), 5u);
  EXPECT_EQ(queue.OnLost(), std::nullopt);
  EXPECT_TRUE(queue.WantsEngine());
  queue.OnStart();
  queue.OnReady();
  EXPECT_EQ(queue.TakeNext(), 5u);
  EXPECT_EQ(queue.OnLost(), 5u);
  queue.OnStart();
  queue.OnReady();
  // The next one has both of its tries.
  EXPECT_EQ(queue.TakeNext(), 6u);
  EXPECT_EQ(queue.OnLost(), std::nullopt);
}

TEST(RequestQueueTest, AnEngineThatDoesNotStartFailsTheFirstThatWaits) {
  RequestQueue queue(4);
  EXPECT_TRUE(queue.Add(1));
  EXPECT_TRUE(queue.Add(2));
  queue.OnStart();
  EXPECT_EQ(queue.OnLost(), 1u);
  EXPECT_TRUE(queue.WantsEngine());
}

// Each request that was taken in is answered or failed exactly once, and tried at most twice.
TEST(RequestQueueTest, EachRequestEndsOnce) {
  const char* const given = std::getenv("LANEWAY_SEED");
  const unsigned first = given != nullptr ? static_cast<unsigned>(std::atoll(given)) : 1;
  for (unsigned seed = first; seed < first + 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    RequestQueue queue(3);
    std::set<uint64_t> open;
    std::map<uint64_t, int> tries;
    uint64_t last = 0;
    const auto end = [&](uint64_t client) { EXPECT_EQ(open.erase(client), 1u) << client; };
    for (int i = 0; i < 200; ++i) {
      switch (random() % 5) {
        case 0:
          if (queue.Add(++last)) open.insert(last);
          break;
        case 1:
          if (queue.state() == EngineState::kNone) queue.OnStart();
          break;
        case 2:
          if (queue.state() == EngineState::kStarting) queue.OnReady();
          if (queue.state() == EngineState::kBusy) end(queue.OnAnswer());
          break;
        case 3:
          if (const std::optional<uint64_t> next = queue.TakeNext()) {
            EXPECT_LE(++tries[*next], 2);
            EXPECT_EQ(open.count(*next), 1u);
          }
          break;
        case 4:
          if (queue.state() == EngineState::kNone) break;
          if (const std::optional<uint64_t> failed = queue.OnLost()) end(*failed);
          break;
      }
    }
  }
}

}  // namespace
}  // namespace functions
