#include "daemon/control/journal.h"

#include <gtest/gtest.h>

#include <string>

namespace control {
namespace {

TEST(JournalTest, NumbersGrowAndTextsAreCut) {
  Journal journal(4);
  journal.Add({.kind = EventKind::kGrant, .at_us = 5, .session = 1, .lane = 2});
  journal.Add({.kind = EventKind::kFault, .at_us = 6}, std::string(500, 'x'));
  const std::vector<Event> events = journal.After(0, 10);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].number, 1u);
  EXPECT_EQ(events[0].lane, 2u);
  EXPECT_STREQ(events[0].text, "");
  EXPECT_EQ(std::string(events[1].text), std::string(kEventTextBytes - 1, 'x'));
}

TEST(JournalTest, TheOldestMakeRoom) {
  Journal journal(4);
  for (int64_t i = 0; i < 10; ++i) journal.Add({.at_us = i});
  EXPECT_EQ(journal.last(), 10u);
  EXPECT_EQ(journal.lost(), 6u);
  const std::vector<Event> events = journal.After(0, 10);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events.front().number, 7u);
  EXPECT_EQ(events.back().at_us, 9);
}

TEST(JournalTest, IsReadInParts) {
  Journal journal(8);
  for (int64_t i = 0; i < 6; ++i) journal.Add({.at_us = i});
  std::vector<Event> part = journal.After(0, 4);
  ASSERT_EQ(part.size(), 4u);
  part = journal.After(part.back().number, 4);
  ASSERT_EQ(part.size(), 2u);
  EXPECT_EQ(part.back().number, 6u);
  EXPECT_TRUE(journal.After(6, 4).empty());
  EXPECT_TRUE(journal.After(99, 4).empty());
}

TEST(JournalTest, EveryKindHasAName) {
  for (int kind = 0; kind <= static_cast<int>(EventKind::kLimit); ++kind) {
    EXPECT_STRNE(NameOf(static_cast<EventKind>(kind)), "?");
  }
}

}  // namespace
}  // namespace control
