#include "cli/load/answer_stream.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/harness/seed.h"

namespace load {
namespace {

std::string Event(const std::string& json) { return absl::StrCat("data: ", json, "\n\n"); }

std::string Completion() {
  return absl::StrCat(": a comment\n\n", Event(R"({"choices":[{"index":0,"text":"one"}]})"),
                      Event(R"({"choices":[{"index":0,"text":""}]})"),
                      "data:{\"choices\":[{\"text\":\" two\"}]}\r\n\r\n",
                      Event(R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}})"),
                      Event("[DONE]"));
}

TEST(AnswerStreamTest, TokensHaveTheTimesOfTheirChunks) {
  Answer answer;
  AnswerStream stream(&answer);
  const std::string text = Completion();
  int64_t now_us = 0;
  for (const char byte : text) ASSERT_TRUE(stream.Feed({&byte, 1}, ++now_us));
  stream.End();
  EXPECT_TRUE(answer.ok()) << answer.failure;
  ASSERT_EQ(answer.tokens_us.size(), 3u);
  const std::string first = text.substr(0, text.find("one"));
  EXPECT_EQ(answer.tokens_us[0], static_cast<int64_t>(text.find('\n', first.size()) + 1));
  EXPECT_EQ(answer.prompt_tokens, 7);
  EXPECT_EQ(answer.answer_tokens, 3);
}

TEST(AnswerStreamTest, AnySplitGivesTheSame) {
  const uint64_t seed = harness::Seed();
  std::mt19937_64 random(seed);
  const std::string text = Completion();
  for (int round = 0; round < 2'000; ++round) {
    Answer answer;
    AnswerStream stream(&answer);
    for (size_t at = 0; at < text.size();) {
      const size_t size = 1 + random() % 60;
      ASSERT_TRUE(stream.Feed(std::string_view(text).substr(at, size), 5));
      at += size;
    }
    stream.End();
    ASSERT_TRUE(answer.ok()) << "seed " << seed << ": " << answer.failure;
    ASSERT_EQ(answer.tokens_us, std::vector<int64_t>(3, 5));
  }
}

TEST(AnswerStreamTest, TheFirstChunkOfAChatIsNoToken) {
  Answer answer;
  AnswerStream stream(&answer);
  ASSERT_TRUE(
      stream.Feed(Event(R"({"choices":[{"delta":{"role":"assistant","content":""}}]})"), 1));
  ASSERT_TRUE(stream.Feed(Event(R"({"choices":[{"delta":{"content":"yes"}}]})"), 2));
  ASSERT_TRUE(stream.Feed(Event(R"({"choices":[{"delta":{},"finish_reason":"stop"}]})"), 3));
  ASSERT_TRUE(stream.Feed(Event("[DONE]"), 4));
  stream.End();
  EXPECT_TRUE(answer.ok());
  EXPECT_EQ(answer.tokens_us, std::vector<int64_t>{2});
}

struct BadStream {
  const char* text;
  const char* failure;
};

TEST(AnswerStreamTest, WhatIsNoSuchStreamIsSaidInOneSentence) {
  const BadStream cases[] = {
      {"data: {\"error\":{\"message\":\"the engine\\u0007 was lost\"}}\n", "the engine? was lost"},
      {"data: nonsense\n", "the server sent no JSON: nonsense"},
      {"data: [1]\n", "the server sent no JSON: [1]"},
      {"data: {\"choices\":[{\"text\":\"a\"}]}\n", "the stream ended before [DONE]"},
      {"data: [DONE]\n", "the answer has no token"},
      {"", "the stream ended before [DONE]"}};
  for (const BadStream& bad : cases) {
    Answer answer;
    AnswerStream stream(&answer);
    stream.Feed(bad.text, 1);
    stream.End();
    EXPECT_EQ(answer.failure, bad.failure);
  }
}

TEST(AnswerStreamTest, ALineHasABound) {
  Answer answer;
  AnswerStream stream(&answer);
  const std::string part(1 << 16, 'x');
  int fed = 0;
  while (stream.Feed(part, 1)) ASSERT_LT(++fed, 20);
  EXPECT_EQ(answer.failure, "the server sent a line of over 1048576 bytes");
}

}  // namespace
}  // namespace load
