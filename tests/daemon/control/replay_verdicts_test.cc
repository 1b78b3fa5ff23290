#include "daemon/control/replay_verdicts.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tests/harness/seed.h"

namespace control {
namespace {

constexpr ipc::ReplayVerdict kFaster{.body = 7, .permille = 700, .replays = 1};
constexpr ipc::ReplayVerdict kSlower{.body = 7, .permille = 1200, .replays = 0};
constexpr size_t kChecksumAt = 16, kCountAt = 24;

std::string ReasonOf(const std::string& file) {
  const absl::StatusOr<ReplayVerdicts> read = ReplayVerdicts::DecodeUntrusted(file);
  return read.ok() ? "" : std::string(read.status().message());
}

// The file with another number in its first entry, and the checksum that belongs to it.
std::string WithNumber(std::string file, size_t number, uint64_t value) {
  std::memcpy(file.data() + kCountAt + 8 * (1 + number), &value, sizeof value);
  const uint64_t sum = XXH3_64bits(file.data() + kCountAt, file.size() - kCountAt);
  std::memcpy(file.data() + kChecksumAt, &sum, sizeof sum);
  return file;
}

ReplayVerdicts RandomTable(std::mt19937_64* random, size_t events, ReplayVerdicts table = {}) {
  for (size_t i = 0; i < events; ++i) {
    const uint64_t draw = (*random)();
    const ipc::ReplayVerdict verdict{.body = 1 + draw % 40,
                                     .permille = 500 + static_cast<uint32_t>(draw >> 8) % 1000,
                                     .replays = static_cast<uint32_t>(draw >> 32) % 2};
    const int64_t now_s = static_cast<int64_t>(draw >> 40) % 100;
    const KeptVerdict* const kept = table.Find(verdict.body);
    if (kept == nullptr || draw >> 60 < 8) {
      table.Measured(verdict, now_s);
    } else {
      table.Taken(kept->verdict, now_s);
    }
  }
  return table;
}

TEST(ReplayVerdictsTest, AVerdictIsInForceForItsStartsAndThenMeasuredAgain) {
  ReplayVerdicts table;
  table.Measured(kFaster, 10);
  for (uint64_t i = 0; i < ReplayVerdicts::kFirstStarts; ++i) {
    ASSERT_EQ(table.InForce(), std::vector{kFaster}) << i;
    table.Taken(kFaster, 11);
  }
  EXPECT_TRUE(table.InForce().empty());
  table.Measured(kFaster, 12);
  EXPECT_EQ(table.InForce(), std::vector{kFaster});
}

TEST(ReplayVerdictsTest, WhatMeasurementsAgreeOnIsMeasuredMoreRarely) {
  ReplayVerdicts table;
  const auto starts_in_force = [&] {
    uint64_t starts = 0;
    for (; !table.InForce().empty(); ++starts) table.Taken(table.InForce()[0], 1);
    return starts;
  };
  table.Measured(kFaster, 1);
  EXPECT_EQ(starts_in_force(), ReplayVerdicts::kFirstStarts);
  table.Measured(kFaster, 1);
  EXPECT_EQ(starts_in_force(), 2 * ReplayVerdicts::kFirstStarts);
  for (int i = 0; i < 20; ++i) table.Measured(kFaster, 1);
  EXPECT_EQ(starts_in_force(), ReplayVerdicts::kMostStarts);
  table.Measured(kSlower, 1);
  EXPECT_EQ(starts_in_force(), ReplayVerdicts::kFirstStarts) << "the verdict has turned";
}

TEST(ReplayVerdictsTest, AStartByAVerdictThatHasTurnedDoesNotCount) {
  ReplayVerdicts table;
  table.Measured(kFaster, 1);
  table.Measured(kSlower, 2);
  table.Taken(kFaster, 3);
  EXPECT_EQ(table.Find(7)->starts, 0u);
  EXPECT_EQ(table.Find(7)->used_s, 2);
}

TEST(ReplayVerdictsTest, TheBodyUnusedForLongestMakesRoom) {
  ReplayVerdicts table;
  for (uint64_t body = 1; body <= ReplayVerdicts::kMax; ++body)
    table.Measured({body, 900, 1}, static_cast<int64_t>(body));
  table.Taken({1, 900, 1}, 1000);
  table.Measured({5000, 900, 1}, 1001);
  EXPECT_EQ(table.size(), ReplayVerdicts::kMax);
  EXPECT_NE(table.Find(1), nullptr) << "it was used since";
  EXPECT_EQ(table.Find(2), nullptr);
  EXPECT_NE(table.Find(5000), nullptr);
}

TEST(ReplayVerdictsTest, TheLaterMeasurementStaysWhateverTheClockSays) {
  ReplayVerdicts ours, theirs;
  theirs.Measured(kSlower, 100);
  ours.Merge(theirs);
  ours.Measured(kFaster, 50);
  ours.Merge(theirs);
  EXPECT_EQ(ours.Find(7)->verdict, kFaster);
}

// --- the file ------------------------------------------------------------------------------------

TEST(ReplayVerdictsTest, AFileIsReadAsItWasWritten) {
  std::mt19937_64 random(harness::Seed());
  for (int trial = 0; trial < 200; ++trial) {
    const ReplayVerdicts table = RandomTable(&random, random() % 60);
    const std::string file = table.Encode();
    EXPECT_LE(file.size(), ReplayVerdicts::kFileBytesMax);
    const absl::StatusOr<ReplayVerdicts> read = ReplayVerdicts::DecodeUntrusted(file);
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_EQ(*read, table);
  }
}

TEST(ReplayVerdictsTest, AFileThatIsCutAnywhereIsRefused) {
  std::mt19937_64 random(harness::Seed());
  const std::string file = RandomTable(&random, 60).Encode();
  for (size_t bytes = 0; bytes < file.size(); ++bytes) {
    const std::string reason = ReasonOf(file.substr(0, bytes));
    EXPECT_EQ(reason, bytes < 8 ? "is no file of replay verdicts" : "is cut short") << bytes;
  }
  EXPECT_EQ(ReasonOf(file + '\0'), "is damaged");
}

TEST(ReplayVerdictsTest, AnyChangedBitIsFound) {
  std::mt19937_64 random(harness::Seed());
  const std::string file = RandomTable(&random, 20).Encode();
  for (size_t bit = 0; bit < 8 * file.size(); ++bit) {
    std::string damaged = file;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    EXPECT_NE(ReasonOf(damaged), "") << bit;
  }
}

TEST(ReplayVerdictsTest, EachRefusalSaysWhatIsWrong) {
  ReplayVerdicts table;
  table.Measured(kFaster, 1);
  const std::string file = table.Encode();
  std::string other = file;
  ++other[8];
  EXPECT_EQ(ReasonOf(other), "is of another version of Laneway");
  other = file;
  ++other[kChecksumAt];
  EXPECT_EQ(ReasonOf(other), "is damaged");
  other = file;
  other[kCountAt + 2] = 1;
  EXPECT_EQ(ReasonOf(other), "is damaged") << "more verdicts than are ever kept";
  EXPECT_EQ(ReasonOf("{\"laneway\": 1}"), "is no file of replay verdicts");
}

// Each number of an entry has a range; the checksum of such a file is right.
TEST(ReplayVerdictsTest, WhatNoMeasurementGivesIsRefused) {
  ReplayVerdicts table;
  table.Measured(kFaster, 1);
  const std::string good = table.Encode();
  ASSERT_EQ(ReasonOf(WithNumber(good, 0, 8)), "");
  const std::pair<size_t, uint64_t> bad[] = {
      {0, 0}, {1, 0},     {1, 100'001}, {1, 1ull << 32}, {2, 2},
      {3, 0}, {3, ~0ull}, {4, ~0ull},   {5, 1ull << 63}, {6, 1ull << 63}};
  for (const auto& [number, value] : bad)
    EXPECT_EQ(ReasonOf(WithNumber(good, number, value)), "is damaged") << number << " " << value;
  table.Measured({8, 900, 1}, 1);
  EXPECT_EQ(ReasonOf(WithNumber(table.Encode(), 0, 8)), "is damaged") << "one body twice";
  EXPECT_EQ(ReasonOf(WithNumber(table.Encode(), 0, 9)), "is damaged") << "bodies ascend";
}

// --- several daemons of one user -----------------------------------------------------------------

TEST(ReplayVerdictsTest, MergedInAnyOrderTheResultIsTheSame) {
  std::mt19937_64 random(harness::Seed());
  for (int trial = 0; trial < 500; ++trial) {
    const ReplayVerdicts begin = RandomTable(&random, 40);  // what all have read
    const ReplayVerdicts a = RandomTable(&random, 20, begin), b = RandomTable(&random, 20, begin),
                         c = RandomTable(&random, 20);
    ReplayVerdicts ab = a, ba = b, ab_c = a, bc = b, a_bc = a, aa = a;
    ab.Merge(b);
    ba.Merge(a);
    ASSERT_EQ(ab, ba);
    ab_c.Merge(b);
    ab_c.Merge(c);
    bc.Merge(c);
    a_bc.Merge(bc);
    ASSERT_EQ(ab_c, a_bc);
    aa.Merge(a);
    ASSERT_EQ(aa, a);
    for (uint64_t body = 1; body <= 40; ++body) {
      const KeptVerdict* const merged = ab.Find(body);
      const bool known = a.Find(body) != nullptr || b.Find(body) != nullptr;
      ASSERT_EQ(merged != nullptr, known) << body;
      if (a.Find(body) != nullptr) {
        ASSERT_GE(merged->measured_s, a.Find(body)->measured_s);
      }
    }
  }
}

}  // namespace
}  // namespace control
