#include "shim/handle_table.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace {

struct Thing {
  int value = 0;
};
using Table = shim::HandleTable<Thing, ipc::HandleKind::kEvent>;

TEST(HandleTable, FindsOnlyWhatLives) {
  Table table(10);
  uint64_t first = 0, second = 0;
  Thing* const thing = table.Create(&first);
  ASSERT_NE(thing, nullptr);
  table.Create(&second);
  EXPECT_NE(first, second);
  EXPECT_EQ(table.Find(first), thing);
  EXPECT_EQ(shim::KindOf(first), ipc::HandleKind::kEvent);
  EXPECT_EQ(table.ValueOf(shim::NameOf(first)), first);
  EXPECT_EQ(table.live(), 2u);
  EXPECT_TRUE(table.Destroy(first));
  EXPECT_EQ(table.Find(first), nullptr);
  EXPECT_FALSE(table.Destroy(first));
  EXPECT_EQ(table.live(), 1u);
}

TEST(HandleTable, StaleAndForeignValuesAreTold) {
  Table table(10);
  uint64_t stale = 0, fresh = 0;
  table.Create(&stale);
  table.Destroy(stale);
  table.Create(&fresh);  // the same name again
  EXPECT_EQ(shim::NameOf(stale), shim::NameOf(fresh));
  EXPECT_EQ(table.Find(stale), nullptr);
  EXPECT_NE(table.Find(fresh), nullptr);
  EXPECT_EQ(table.Find(0), nullptr);
  EXPECT_EQ(table.Find(~uint64_t{0}), nullptr);
  EXPECT_EQ(table.Find(reinterpret_cast<uint64_t>(&table)), nullptr);
  EXPECT_EQ(table.Find(fresh + 1), nullptr);  // never created
  EXPECT_EQ(table.Find(fresh ^ uint64_t{1} << shim::kKindShift), nullptr);
}

TEST(HandleTable, RefusesBeyondItsCapacity) {
  Table table(3);
  uint64_t value = 0;
  for (int i = 0; i < 3; ++i) EXPECT_NE(table.Create(&value), nullptr);
  uint64_t none = 0;
  EXPECT_EQ(table.Create(&none), nullptr);
  table.Destroy(value);
  EXPECT_NE(table.Create(&none), nullptr);
}

TEST(HandleTable, VisitsEveryLiveObject) {
  Table table;
  std::set<uint64_t> expected;
  for (int i = 0; i < 3000; ++i) {
    uint64_t value = 0;
    table.Create(&value);
    if (i % 3 == 0) {
      table.Destroy(value);
    } else {
      expected.insert(value);
    }
  }
  std::set<uint64_t> seen;
  table.ForEach([&](uint64_t value, const Thing*) { seen.insert(value); });
  EXPECT_EQ(seen, expected);
}

TEST(HandleTable, ThreadsCreateFindAndDestroyAtOnce) {
  Table table;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&table, t] {
      for (int i = 0; i < 2000; ++i) {
        uint64_t value = 0;
        Thing* const thing = table.Create(&value);
        thing->value = t;
        ASSERT_EQ(table.Find(value), thing);
        ASSERT_EQ(thing->value, t);
        ASSERT_TRUE(table.Destroy(value));
        ASSERT_EQ(table.Find(value), nullptr);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(table.live(), 0u);
}

}  // namespace
