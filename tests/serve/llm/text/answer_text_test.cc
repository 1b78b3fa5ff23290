#include "serve/llm/text/answer_text.h"

#include <gtest/gtest.h>

#include <random>

#include "serve/llm/text/utf8.h"
#include "tests/harness/seed.h"

namespace serve::llm {
namespace {

TEST(AnswerTextTest, TheBeginningOfAStopTextIsHeldBack) {
  AnswerText answer({.texts = {"END", "\n\n"}});
  EXPECT_EQ(answer.Add("aE").text, "a");
  EXPECT_EQ(answer.Add("N").text, "");
  EXPECT_EQ(answer.Add("x\n").text, "ENx");
  EXPECT_EQ(answer.Add("EN").text, "\n");
  const AnswerPiece last = answer.Add("D rest");
  EXPECT_EQ(last.text, "");
  EXPECT_TRUE(last.stopped);
  EXPECT_EQ(answer.Flush().text, "");
}

TEST(AnswerTextTest, WhatWasHeldBackComesAtTheEnd) {
  AnswerText answer({.texts = {"END"}});
  EXPECT_EQ(answer.Add("EN\xe4\xb8").text, "");
  EXPECT_EQ(answer.Flush().text, "EN\ufffd");
}

TEST(AnswerTextTest, AStopTextMayBeThatOfIncompleteBytes) {
  AnswerText answer({.texts = {"\ufffd"}});
  EXPECT_EQ(answer.Add("a\xe4").text, "a");
  EXPECT_TRUE(answer.Flush().stopped);
}

TEST(AnswerTextTest, AnIncludedStopTextIsTold) {
  AnswerText answer({.texts = {"b", "ab"}, .included = true});
  EXPECT_EQ(answer.Add("xabc").text, "xab");
  EXPECT_TRUE(answer.stopped());
}

// All decoded at once, and cut where the first stop text ends; the longest where several end there.
std::string Cut(const std::string& text, const StopTexts& stops, bool* stopped) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops.texts)
      if (!stop.empty() && std::string_view(text).substr(0, end).ends_with(stop))
        longest = std::max(longest, stop.size());
    *stopped = longest > 0;
    if (*stopped) return text.substr(0, stops.included ? end : end - longest);
  }
  return text;
}

// Whether an end of the text begins a stop text, so that the pieces may lack it.
bool MayBeHeld(std::string_view held, const StopTexts& stops) {
  for (const std::string& stop : stops.texts)
    if (stop.size() > held.size() && stop.starts_with(held)) return true;
  return held.empty();
}

std::string Random(std::mt19937_64* random, size_t longest) {
  const std::string_view letters[] = {"a",    "b", "\xc3\xa9",        "\xe2\x82",
                                      "\x80", "a", "\xf0\x9f\x98\x80"};
  std::string text;
  for (size_t count = (*random)() % (longest + 1); count > 0; --count)
    text += letters[(*random)() % std::size(letters)];
  return text;
}

TEST(AnswerTextTest, PiecesAreTheTextUpToTheFirstStopHoweverBytesAreSplit) {
  std::mt19937_64 random(harness::Seed());
  for (int round = 0; round < 20000; ++round) {
    StopTexts stops{.included = random() % 2 == 0};
    for (size_t count = random() % 4; count > 0; --count)
      stops.texts.push_back(TokenText(Random(&random, 4)));
    const std::string bytes = Random(&random, 16);
    bool stopped = false;
    const std::string wanted = Cut(TokenText(bytes), stops, &stopped);
    AnswerText answer(stops);
    Detokenizer detokenizer;
    std::string text, decoded;
    for (size_t at = 0; at < bytes.size() && !answer.stopped();) {
      const size_t count = random() % 4;
      const std::string_view token = std::string_view(bytes).substr(at, count);
      const AnswerPiece piece = answer.Add(token);
      ASSERT_TRUE(IsUtf8(piece.text));
      ASSERT_EQ(piece.stopped, answer.stopped());
      text += piece.text;
      decoded += detokenizer.Add(token);
      if (!piece.stopped) {
        ASSERT_TRUE(decoded.starts_with(text));
        ASSERT_TRUE(MayBeHeld(std::string_view(decoded).substr(text.size()), stops));
      }
      at += count;
    }
    text += answer.Flush().text;
    ASSERT_EQ(text, wanted);
    ASSERT_EQ(answer.stopped(), stopped);
  }
}

}  // namespace
}  // namespace serve::llm
