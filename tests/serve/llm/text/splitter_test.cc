#include "serve/llm/text/splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <regex>
#include <string>
#include <vector>

#include "serve/llm/text/expression.h"
#include "tests/harness/seed.h"

namespace serve::llm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<std::vector<std::string>> TryToSplit(const std::vector<SplitStage>& stages,
                                                    std::string_view text) {
  const absl::StatusOr<Splitter> splitter = Splitter::MakeUntrusted(stages);
  if (!splitter.ok()) return splitter.status();
  const absl::StatusOr<std::vector<std::string_view>> pieces = splitter->Split(text);
  if (!pieces.ok()) return pieces.status();
  return std::vector<std::string>(pieces->begin(), pieces->end());
}

std::vector<std::string> PiecesOf(const std::vector<SplitStage>& stages, std::string_view text) {
  const absl::StatusOr<std::vector<std::string>> pieces = TryToSplit(stages, text);
  EXPECT_TRUE(pieces.ok()) << pieces.status();
  return pieces.value_or(std::vector<std::string>());
}

std::string WhyNotSplit(const std::string& expression, std::string_view text) {
  return std::string(TryToSplit({{expression}}, text).status().message());
}

TEST(SplitterTest, StagesApplyInTurn) {
  // One expression of both would take the two spaces apart.
  EXPECT_THAT(PiecesOf({{R"(\d)"}, {R"(\s+(?!\S)|\s+)"}}, "a  1"), ElementsAre("a", "  ", "1"));
  EXPECT_THAT(PiecesOf({{R"(\d|\s+(?!\S)|\s+)"}}, "a  1"), ElementsAre("a", " ", " ", "1"));
}

TEST(SplitterTest, AStageMayKeepMatchesOrWhatIsBetween) {
  EXPECT_THAT(PiecesOf({{"b+", KeptPieces::kMatches}}, "abbcb"), ElementsAre("bb", "b"));
  EXPECT_THAT(PiecesOf({{"b+", KeptPieces::kBetween}}, "abbcb"), ElementsAre("a", "c"));
}

TEST(SplitterTest, ClassesAreUnicodes) {
  EXPECT_THAT(PiecesOf({{R"(\s)"}}, "a\u0085b\u3000c\u180ed"),
              ElementsAre("a", "\u0085", "b", "\u3000", "c\u180ed"));
  EXPECT_THAT(PiecesOf({{R"([^\sa]+)"}}, "xa\u2003y"), ElementsAre("x", "a\u2003", "y"));
  // A combining mark, a joining punctuation mark, an encircled letter; a fraction is none.
  EXPECT_THAT(PiecesOf({{R"(\w+)"}}, "a\u0301\u203f\u24b6\u00bd"),
              ElementsAre("a\u0301\u203f\u24b6", "\u00bd"));
  EXPECT_THAT(PiecesOf({{R"(\W)", KeptPieces::kMatches}}, "a \u00bd"), ElementsAre(" ", "\u00bd"));
}

TEST(SplitterTest, ExpressionsOfLinesSeeTheirBorders) {
  EXPECT_THAT(PiecesOf({{"^a"}}, "aa\na"), ElementsAre("a", "a\n", "a"));
}

TEST(SplitterTest, ATextIsAnExpression) {
  EXPECT_THAT(PiecesOf({{ExpressionOfText("a.*\u2581")}}, "xa.*\u2581a*"),
              ElementsAre("x", "a.*\u2581", "a*"));
}

TEST(SplitterTest, ExpressionsThatMeanSomethingElseAreRefused) {
  const std::vector<std::string> stages = {"(",      "[^\\Sa]", "a\\C",    "(*LIMIT_MATCH=1)a",
                                           "\\h",    "\\Ka",    "a{1,3}+", "[a[b]]",
                                           "[a&&b]", "(?s:.)",  "(?m)a",   "[]a]",
                                           "[^]a]",  "\\xA0",   "a\\",     std::string(5000, 'a')};
  for (const std::string& stage : stages) {
    EXPECT_THAT(WhyNotSplit(stage, "a"), HasSubstr("not supported")) << stage;
  }
  EXPECT_FALSE(Splitter::MakeUntrusted(std::vector<SplitStage>(17, {"a"})).ok());
}

TEST(SplitterTest, WhatATextCostsIsBounded) {
  // Steps of one match; of many matches; what each of many matches looks at.
  EXPECT_THAT(WhyNotSplit("(a|aa)+$", std::string(200, 'a') + "b"), HasSubstr("too many steps"));
  std::string pieces;
  for (int i = 0; i < 20'000; ++i) pieces += std::string(20, 'a') + "b";
  EXPECT_THAT(WhyNotSplit("(a|aa)+c|.", pieces), HasSubstr("too many steps"));
  EXPECT_THAT(WhyNotSplit(R"(\p{L}*+\d)", std::string(1'000'000, 'a')),
              HasSubstr("too many steps"));
}

constexpr std::string_view kUsual =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

TEST(SplitterTest, UsualExpressionsTakeLongTexts) {
  for (const std::string& text : {std::string(1'000'000, 'a'), std::string(30'000, ' ') + "a",
                                  std::string(1'000'000, '.'), std::string(30'000, '\n')})
    EXPECT_EQ(WhyNotSplit(std::string(kUsual), text), "") << text[0];
}

TEST(SplitterTest, TextMustBeUtf8) {
  EXPECT_THAT(WhyNotSplit("a", "b\xff"), HasSubstr("UTF-8"));
  EXPECT_THAT(WhyNotSplit("a", "\xe4\xb8"), HasSubstr("UTF-8"));
}

// The library's expressions have classes of ASCII, so texts have, too. Pieces are longer than what
// an attempt sees at first.
TEST(SplitterTest, PiecesAreThoseOfAnotherLibrary) {
  std::mt19937_64 random(harness::Seed());
  const std::regex usual(
      "'s|'t|'re|'ve|'m|'ll|'d| ?[a-zA-Z]+| ?[0-9]+| ?[^\\sa-zA-Z0-9]+|\\s+(?!\\S)|\\s+");
  const std::string letters = "ab'st 1.\n ";
  for (int round = 0; round < 300; ++round) {
    std::string text;
    while (text.size() < 300) {
      const size_t length = random() % 4 == 0 ? random() % 200 : 1;
      text.append(length, letters[random() % letters.size()]);
    }
    std::vector<std::string> expected;
    for (std::sregex_iterator match(text.begin(), text.end(), usual), end; match != end; ++match)
      expected.push_back(match->str());
    ASSERT_EQ(PiecesOf({{std::string(kUsual)}}, text), expected) << text;
  }
}

}  // namespace
}  // namespace serve::llm
