#include "serve/llm/text/byte_pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "serve/llm/text/byte_letters.h"
#include "tests/harness/seed.h"

namespace serve::llm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using MergeList = std::vector<std::pair<std::string, std::string>>;

absl::StatusOr<BytePairs> Made(const std::vector<std::string>& tokens, const MergeList& merges,
                               const PairRules& rules = {}) {
  std::vector<TokenMerge> ranked;
  for (const auto& [left, right] : merges)
    ranked.push_back({left, right, static_cast<uint32_t>(ranked.size())});
  return BytePairs::MakeUntrusted(tokens, ranked, rules);
}

std::vector<int32_t> TokensOf(const BytePairs& pairs, std::string_view piece) {
  std::vector<int32_t> tokens;
  pairs.Append(piece, &tokens);
  return tokens;
}

// Goes over the whole piece for each merge.
std::vector<std::string> MergedSlowly(const std::string& piece, const MergeList& merges) {
  std::vector<std::string> parts;
  for (const char letter : piece) parts.emplace_back(1, letter);
  while (true) {
    size_t best_rank = merges.size(), best_at = 0;
    for (size_t at = 0; at + 1 < parts.size(); ++at) {
      const auto found =
          std::find(merges.begin(), merges.end(), std::pair(parts[at], parts[at + 1]));
      const size_t rank = static_cast<size_t>(found - merges.begin());
      if (rank < best_rank) best_rank = rank, best_at = at;
    }
    if (best_rank == merges.size()) return parts;
    parts[best_at] += parts[best_at + 1];
    parts.erase(parts.begin() + static_cast<ptrdiff_t>(best_at) + 1);
  }
}

TEST(ByteLettersTest, EveryByteHasALetterOfItsOwn) {
  std::vector<std::string> letters;
  for (int byte = 0; byte < 256; ++byte) {
    letters.push_back(LetterOfByte(static_cast<uint8_t>(byte)));
    EXPECT_EQ(BytesOfLetters(letters.back()), std::string(1, static_cast<char>(byte)));
  }
  std::sort(letters.begin(), letters.end());
  EXPECT_EQ(std::unique(letters.begin(), letters.end()), letters.end());
  EXPECT_EQ(LetterOfByte(' '), "\u0120");
  EXPECT_EQ(LetterOfByte('\n'), "\u010a");
  EXPECT_EQ(LetterOfByte(0xad), "\u0143");
  EXPECT_EQ(BytesOfLetters("a\u4e2d\u0120"), "a\u4e2d ");
  EXPECT_EQ(BytesOfLetters("\xc4"), "\xc4");
}

TEST(BytePairsTest, TheEarliestMergeComesFirst) {
  const std::vector<std::string> tokens = {"a", "b", "c", "ab", "bc"};
  const absl::StatusOr<BytePairs> ab = Made(tokens, {{"a", "b"}, {"b", "c"}});
  const absl::StatusOr<BytePairs> bc = Made(tokens, {{"b", "c"}, {"a", "b"}});
  ASSERT_TRUE(ab.ok() && bc.ok());
  EXPECT_THAT(TokensOf(*ab, "abc"), ElementsAre(3, 2));
  EXPECT_THAT(TokensOf(*bc, "abc"), ElementsAre(0, 4));
  // A byte that is no token is left out before anything is merged.
  EXPECT_THAT(TokensOf(*bc, "axb"), ElementsAre(3));
  EXPECT_THAT(TokensOf(*bc, ""), ElementsAre());
}

TEST(BytePairsTest, WholePiecesNeedNoMerges) {
  const std::vector<std::string> tokens = {"a", "b", "\u0120ab"};
  const absl::StatusOr<BytePairs> whole = Made(tokens, {}, {.whole_pieces = true});
  const absl::StatusOr<BytePairs> parts = Made(tokens, {});
  ASSERT_TRUE(whole.ok() && parts.ok());
  EXPECT_THAT(TokensOf(*whole, " ab"), ElementsAre(2));
  EXPECT_THAT(TokensOf(*parts, " ab"), ElementsAre(0, 1));
}

TEST(BytePairsTest, MergesOfNoTokensAreRefused) {
  for (const MergeList& merges :
       {MergeList{{"a", "c"}}, MergeList{{"c", "a"}}, MergeList{{"b", "a"}}}) {
    EXPECT_THAT(std::string(Made({"a", "b", "ab"}, merges).status().message()),
                HasSubstr("no tokens"));
  }
}

TEST(BytePairsTest, TokensOfBytesHaveTwoDigits) {
  EXPECT_EQ(TokenOfByte(0x0a), "<0x0A>");
  for (int byte = 0; byte < 256; ++byte)
    EXPECT_EQ(ByteOfToken(TokenOfByte(static_cast<uint8_t>(byte))), byte);
  for (const char* const other : {"<0xA>", "<0x0g>", "<0x0A", "<0x0A>>", "<0x+1>", "a"})
    EXPECT_EQ(ByteOfToken(other), std::nullopt) << other;
}

TEST(BytePairsTest, CharactersThatAreNoTokensFallBackToBytes) {
  std::vector<std::string> tokens = {"<unk>", "a", "\u00e9", "a\u00e9", "<0xC3>", "<0xA8>"};
  PairRules rules = {.byte_level = false, .byte_fallback = true, .unknown = 0};
  const absl::StatusOr<BytePairs> pairs = Made(tokens, {{"a", "\u00e9"}}, rules);
  ASSERT_TRUE(pairs.ok()) << pairs.status();
  EXPECT_THAT(TokensOf(*pairs, "a\u00e9\u00e8"), ElementsAre(3, 4, 5));
  // All bytes of a character or none: U+00E7 shares the first.
  EXPECT_THAT(TokensOf(*pairs, "\u00e7\u00e7"), ElementsAre(0, 0));
  rules.fuse_unknown = true;
  EXPECT_THAT(TokensOf(*Made(tokens, {}, rules), "\u00e7\u00e7a\u00e7"), ElementsAre(0, 1, 0));
  rules.unknown.reset();
  EXPECT_THAT(TokensOf(*Made(tokens, {}, rules), "\u00e7a"), ElementsAre(1));
  rules.byte_fallback = false;
  EXPECT_THAT(TokensOf(*Made(tokens, {}, rules), "\u00e8a"), ElementsAre(1));
}

TEST(BytePairsTest, TheHeapMergesAsTheSlowWayDoes) {
  std::mt19937_64 random(harness::Seed());
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> tokens = {"a", "b", "c"};
    MergeList merges;
    for (int i = 0; i < 12; ++i) {
      const std::pair<std::string, std::string> merge(tokens[random() % tokens.size()],
                                                      tokens[random() % tokens.size()]);
      const std::string joined = merge.first + merge.second;
      if (std::find(merges.begin(), merges.end(), merge) != merges.end()) continue;
      merges.push_back(merge);
      if (std::find(tokens.begin(), tokens.end(), joined) == tokens.end()) tokens.push_back(joined);
    }
    const absl::StatusOr<BytePairs> pairs = Made(tokens, merges);
    ASSERT_TRUE(pairs.ok()) << pairs.status();
    std::string piece(random() % 60, 'a');
    for (char& letter : piece) letter = static_cast<char>('a' + random() % 3);
    std::vector<std::string> fast;
    for (const int32_t token : TokensOf(*pairs, piece))
      fast.push_back(tokens[static_cast<size_t>(token)]);
    ASSERT_EQ(fast, MergedSlowly(piece, merges)) << piece;
  }
}

}  // namespace
}  // namespace serve::llm
