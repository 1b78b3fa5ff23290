#include "daemon/control/learned.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace control {
namespace {

const Needs kRun = {100, 2000, 200'000, 1 << 20, 1 << 21};

TEST(LearnedTest, ComesBackFromItsFile) {
  Learned learned;
  learned.Learn(1, "python3 train.py", kRun, 50);
  learned.Learn(2, "name \"with\" \n and \xff bytes", kRun, 60);
  learned.LearnBeside(1, 2, 1300);
  Learned again;
  EXPECT_EQ(again.MergeUntrusted(learned.Encode()), 0u);
  EXPECT_EQ(again.Encode(), learned.Encode());
  const LearnedCommand* const command = again.Find(1);
  ASSERT_NE(command, nullptr);
  EXPECT_EQ(command->needs.iterations, 100);
  EXPECT_EQ(command->needs.ephemeral_bytes, 1 << 21);
  EXPECT_EQ(command->beside.at(2).permille, 1300);
  EXPECT_EQ(again.Find(3), nullptr);
}

TEST(LearnedTest, LaterRunsWeighMore) {
  Learned learned;
  for (const int64_t iterations : {100, 200, 200}) {
    Needs run = kRun;
    run.iterations = iterations;
    learned.Learn(1, "a", run, 1);
  }
  EXPECT_EQ(learned.Find(1)->needs.iterations, 175);
  EXPECT_EQ(learned.Find(1)->runs, 3);
}

TEST(LearnedTest, AbsurdFiguresAreCut) {
  Learned learned;
  learned.Learn(1, std::string(100'000, 'x'), {-5, INT64_MAX, INT64_MAX, -1, 7}, -3);
  learned.Learn(1, "a", {INT64_MAX, INT64_MAX, 0, 0, 0}, 5);
  learned.LearnBeside(1, 2, INT64_MAX);
  Learned again;
  EXPECT_EQ(again.MergeUntrusted(learned.Encode()), 0u);
  EXPECT_EQ(again.Encode(), learned.Encode());
}

TEST(LearnedTest, TheOneUnusedForLongestMakesRoom) {
  Learned learned;
  for (uint64_t i = 0; i < Learned::kCommandsMax + 10; ++i) {
    learned.Learn(i, "a", kRun, static_cast<int64_t>(1000 + i));
  }
  EXPECT_EQ(learned.size(), Learned::kCommandsMax);
  EXPECT_EQ(learned.Find(9), nullptr);
  EXPECT_NE(learned.Find(10), nullptr);
  for (uint64_t other = 0; other < 2 * Learned::kBesideMax; ++other) {
    learned.LearnBeside(10, other, 1000);
  }
  EXPECT_EQ(learned.Find(10)->beside.size(), Learned::kBesideMax);
  EXPECT_LE(learned.Encode().size(), Learned::kFileBytesMax);
}

TEST(LearnedTest, WhatIsNoEntryIsSkipped) {
  Learned learned;
  learned.Learn(1, "a", kRun, 50);
  const std::string good = learned.Encode();
  Learned again;
  EXPECT_EQ(again.MergeUntrusted(good + "nonsense\n{}\n[1,2]\n{\"key\":\"zz\"}\n"), 4u);
  EXPECT_EQ(again.size(), 1u);
  EXPECT_EQ(again.MergeUntrusted(good.substr(0, good.size() - 20)), 1u);  // a torn last line
  EXPECT_EQ(Learned().MergeUntrusted("{\"laneway_learned\":99}\n{}\n"), 2u);
  EXPECT_EQ(Learned().MergeUntrusted(""), 0u);
}

TEST(LearnedTest, AnEntryWithTooManyNeighboursIsSkipped) {
  Learned learned;
  learned.Learn(1, "a", kRun, 50);
  for (uint64_t other = 0; other < Learned::kBesideMax; ++other) {
    learned.LearnBeside(1, other, 1000);
  }
  std::string text = learned.Encode();
  EXPECT_EQ(Learned().MergeUntrusted(text), 0u);
  const std::string list = "\"beside\":[";
  const size_t begin = text.find(list);
  ASSERT_NE(begin, std::string::npos);
  text.insert(begin + list.size(), R"({"key":"00000000000000ff","permille":1000,"samples":1},)");
  Learned again;
  EXPECT_EQ(again.MergeUntrusted(text), 1u);
  EXPECT_EQ(again.size(), 0u);
}

TEST(LearnedTest, ALineThatIsTooLongIsSkipped) {
  Learned learned;
  learned.Learn(1, "a", kRun, 50);
  std::string text = learned.Encode();
  text.insert(text.size() - 1, std::string(100, ' '));  // spaces are no fault
  EXPECT_EQ(Learned().MergeUntrusted(text), 0u);
  text.insert(text.size() - 1, std::string(10'000, ' '));
  Learned again;
  EXPECT_EQ(again.MergeUntrusted(text), 1u);
  EXPECT_EQ(again.size(), 0u);
}

TEST(LearnedTest, TheLaterOfTwoDaemonsWins) {
  Learned mine, theirs;
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
  EXPECT_EQ(Learned::KeyOf("/bin/a", "x"), Learned::KeyOf("/bin/a", "x"));
  EXPECT_NE(Learned::KeyOf("/bin/a", "x"), Learned::KeyOf("/bin/ax", ""));
}

}  // namespace
}  // namespace control
