#include "daemon/control/command_profiles.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace control {
namespace {

const Needs kRun = {100, 2000, 200'000, 1 << 20, 1 << 21};

TEST(LearnedTest, ComesBackFromItsFile) {
  CommandProfiles learned;
  learned.Learn(1, "python3 train.py", kRun, 50);
  learned.Learn(2, "name \"with\" \n and \xff bytes", kRun, 60);
  learned.LearnBeside(1, 2, 1300);
  CommandProfiles again;
  EXPECT_EQ(again.MergeUntrusted(learned.Encode()), 0u);
  EXPECT_EQ(again.Encode(), learned.Encode());
  const CommandProfile* const command = again.Find(1);
  ASSERT_NE(command, nullptr);
  EXPECT_EQ(command->needs.iterations, 100);
  EXPECT_EQ(command->needs.ephemeral_bytes, 1 << 21);
  EXPECT_EQ(command->beside.at(2).permille, 1300);
  EXPECT_EQ(again.Find(3), nullptr);
}

TEST(LearnedTest, LaterRunsWeighMore) {
  CommandProfiles learned;
  for (const int64_t iterations : {100, 200, 200}) {
    Needs run = kRun;
    run.iterations = iterations;
    learned.Learn(1, "a", run, 1);
  }
  EXPECT_EQ(learned.Find(1)->needs.iterations, 175);
  EXPECT_EQ(learned.Find(1)->runs, 3);
}

TEST(LearnedTest, AbsurdFiguresAreCut) {
  CommandProfiles learned;
  learned.Learn(1, std::string(100'000, 'x'), {-5, INT64_MAX, INT64_MAX, -1, 7}, -3);
  learned.Learn(1, "a", {INT64_MAX, INT64_MAX, 0, 0, 0}, 5);
  learned.LearnBeside(1, 2, INT64_MAX);
  CommandProfiles again;
  EXPECT_EQ(again.MergeUntrusted(learned.Encode()), 0u);
  EXPECT_EQ(again.Encode(), learned.Encode());
}

TEST(LearnedTest, TheOneUnusedForLongestMakesRoom) {
  CommandProfiles learned;
  for (uint64_t i = 0; i < CommandProfiles::kCommandsMax + 10; ++i) {
    learned.Learn(i, "a", kRun, static_cast<int64_t>(1000 + i));
  }
  EXPECT_EQ(learned.size(), CommandProfiles::kCommandsMax);
  EXPECT_EQ(learned.Find(9), nullptr);
  EXPECT_NE(learned.Find(10), nullptr);
  for (uint64_t other = 0; other < 2 * CommandProfiles::kBesideMax; ++other) {
    learned.LearnBeside(10, other, 1000);
  }
  EXPECT_EQ(learned.Find(10)->beside.size(), CommandProfiles::kBesideMax);
  EXPECT_LE(learned.Encode().size(), CommandProfiles::kFileBytesMax);
}

TEST(LearnedTest, WhatIsNoEntryIsSkipped) {
  CommandProfiles learned;
  learned.Learn(1, "a", kRun, 50);
  const std::string good = learned.Encode();
  CommandProfiles again;
  EXPECT_EQ(again.MergeUntrusted(good + "nonsense\n{}\n[1,2]\n{\"key\":\"zz\"}\n"), 4u);
  EXPECT_EQ(again.size(), 1u);
  EXPECT_EQ(again.MergeUntrusted(good.substr(0, good.size() - 20)), 1u);  // a torn last line
  EXPECT_EQ(CommandProfiles().MergeUntrusted("{\"laneway_learned\":99}\n{}\n"), 2u);
  EXPECT_EQ(CommandProfiles().MergeUntrusted(""), 0u);
}

TEST(LearnedTest, AnEntryWithTooManyNeighboursIsSkipped) {
  CommandProfiles learned;
  learned.Learn(1, "a", kRun, 50);
  for (uint64_t other = 0; other < CommandProfiles::kBesideMax; ++other) {
    learned.LearnBeside(1, other, 1000);
  }
  std::string text = learned.Encode();
  EXPECT_EQ(CommandProfiles().MergeUntrusted(text), 0u);
  const std::string list = "\"beside\":[";
  const size_t begin = text.find(list);
  ASSERT_NE(begin, std::string::npos);
  text.insert(begin + list.size(), R"({"key":"00000000000000ff","permille":1000,"samples":1},)");
  CommandProfiles again;
  EXPECT_EQ(again.MergeUntrusted(text), 1u);
  EXPECT_EQ(again.size(), 0u);
}

TEST(LearnedTest, ALineThatIsTooLongIsSkipped) {
  CommandProfiles learned;
  learned.Learn(1, "a", kRun, 50);
  std::string text = learned.Encode();
  text.insert(text.size() - 1, std::string(100, ' '));  // spaces are no fault
  EXPECT_EQ(CommandProfiles().MergeUntrusted(text), 0u);
  text.insert(text.size() - 1, std::string(10'000, ' '));
  CommandProfiles again;
  EXPECT_EQ(again.MergeUntrusted(text), 1u);
  EXPECT_EQ(again.size(), 0u);
}

TEST(LearnedTest, TheLaterOfTwoDaemonsWins) {
  CommandProfiles mine, theirs;
  mine.Learn(1, "a", kRun, 50);
  Needs longer = kRun;
  longer.iterations = 7;
  theirs.Learn(1, "a", longer, 60);
  theirs.Learn(2, "b", kRun, 10);
  EXPECT_EQ(mine.MergeUntrusted(theirs.Encode()), 0u);
  EXPECT_EQ(mine.Find(1)->needs.iterations, 7);
  EXPECT_NE(mine.Find(2), nullptr);
}

TEST(LearnedTest, TheKeyTellsExecutablesAndArgumentsApart) {
  EXPECT_EQ(CommandProfiles::KeyOf("/bin/a", "x"), CommandProfiles::KeyOf("/bin/a", "x"));
  EXPECT_NE(CommandProfiles::KeyOf("/bin/a", "x"), CommandProfiles::KeyOf("/bin/ax", ""));
}

}  // namespace
}  // namespace control
