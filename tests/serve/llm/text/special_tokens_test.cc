#include "serve/llm/text/special_tokens.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/harness/seed.h"

namespace serve::llm {
namespace {

std::optional<SpecialMatch> NextOf(const SpecialTokens& tokens, std::string_view text,
                                   size_t from = 0) {
  return tokens.Next(text, from, ControlTokens::kParsed);
}

TEST(SpecialTokensTest, WhiteSpaceBesideThemIsTheirs) {
  SpecialTokens tokens;
  tokens.Add("<m>", {1, false, true, true});
  tokens.Add("<n>", {2, false});
  const std::optional<SpecialMatch> both = NextOf(tokens, "a\u3000\n<m> \tb");
  ASSERT_TRUE(both.has_value());
  EXPECT_EQ(both->begin, 1u);
  EXPECT_EQ(both->end, 10u);
  const std::optional<SpecialMatch> none = NextOf(tokens, " <n> ");
  EXPECT_EQ(none->begin, 1u);
  EXPECT_EQ(none->end, 4u);
  // White space before `from` is of the part before.
  EXPECT_EQ(NextOf(tokens, "  <m>", 1)->begin, 1u);
  EXPECT_EQ(NextOf(tokens, "a b<m>")->begin, 3u);
}

TEST(SpecialTokensTest, TheLongestOfTheFirstPlaceCounts) {
  std::mt19937_64 random(harness::Seed());
  const auto text_of = [&random](size_t max) {
    std::string text(1 + random() % max, 'a');
    for (char& letter : text) letter = static_cast<char>('a' + random() % 3);
    return text;
  };
  for (int round = 0; round < 2000; ++round) {
    SpecialTokens tokens;
    std::map<std::string, SpecialToken> known;
    for (int32_t i = 0; i < 6; ++i) {
      const SpecialToken special = {i, random() % 2 == 0};
      const std::string text = text_of(5);
      known.emplace(text, special);
      tokens.Add(text, special);
    }
    const std::string text = text_of(20);
    const ControlTokens control =
        random() % 2 == 0 ? ControlTokens::kAsText : ControlTokens::kParsed;
    const size_t from = random() % (text.size() + 1);
    std::optional<SpecialMatch> expected;
    for (size_t at = from; at < text.size() && !expected.has_value(); ++at) {
      for (size_t length = text.size() - at; length > 0 && !expected.has_value(); --length) {
        const auto found = known.find(text.substr(at, length));
        if (found == known.end()) continue;
        if (found->second.control && control == ControlTokens::kAsText) continue;
        expected = SpecialMatch{at, at + length, found->second.token};
      }
    }
    const std::optional<SpecialMatch> match = tokens.Next(text, from, control);
    ASSERT_EQ(match.has_value(), expected.has_value()) << text;
    if (!match.has_value()) continue;
    EXPECT_EQ(match->begin, expected->begin);
    EXPECT_EQ(match->end, expected->end);
    EXPECT_EQ(match->token, expected->token);
  }
}

}  // namespace
}  // namespace serve::llm
