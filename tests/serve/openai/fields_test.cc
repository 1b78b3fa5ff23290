#include "serve/openai/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace serve::openai {
namespace {

using testing::HasSubstr;

Fields Accepted(std::string_view body, Route route = kCompletions) {
  std::variant<Parsed, Error> parsed = ParseBodyUntrusted(body, route);
  if (const Error* error = std::get_if<Error>(&parsed)) ADD_FAILURE() << error->message;
  return std::holds_alternative<Parsed>(parsed) ? std::get<Parsed>(parsed).fields : Fields();
}

TEST(FieldsTest, ReadsEachKind) {
  const Fields fields = Accepted(
      R"({"prompt": [[1, 2], "x"], "max_tokens": 5.0, "stop": "a", "temperature": 0,
          "logit_bias": {"3": -1.5}, "stream": true, "stream_options": {"include_usage": true}})");
  EXPECT_EQ(fields.prompts.size(), 2u);
  EXPECT_EQ(std::get<0>(fields.prompts[1]), "x");
  EXPECT_EQ(fields.max_tokens, 5);
  EXPECT_EQ(fields.stop, std::vector<std::string>{"a"});
  EXPECT_EQ(fields.temperature, 0);
  EXPECT_EQ(fields.logit_bias[0].second, -1.5f);
  EXPECT_TRUE(fields.include_usage);
}

TEST(FieldsTest, LogprobsMeanWhatTheRouteSays) {
  EXPECT_EQ(Accepted(R"({"prompt": "x", "logprobs": 3})").logprobs, 3);
  const char* const chat =
      R"({"messages": [{"role": "user", "content": "x"}], "logprobs": true, "top_logprobs": 2})";
  EXPECT_TRUE(Accepted(chat, kChat).chat_logprobs);
}

TEST(FieldsTest, PartsOfTextAreOneText) {
  const Fields fields = Accepted(
      R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"},
                                                     {"type": "text", "text": "b"}]}]})",
      kChat);
  EXPECT_EQ(fields.messages[0].content, "ab");
}

TEST(FieldsTest, DepthIsBounded) {
  const auto nested = [](size_t depth) {
    return "{\"prompt\":\"x\",\"a\":" + std::string(depth - 1, '[') + std::string(depth - 1, ']') +
           "}";
  };
  EXPECT_TRUE(std::holds_alternative<Parsed>(ParseBodyUntrusted(nested(kDepthMax), kCompletions)));
  EXPECT_TRUE(
      std::holds_alternative<Error>(ParseBodyUntrusted(nested(kDepthMax + 1), kCompletions)));
  EXPECT_EQ(
      std::get<0>(Accepted(R"({"prompt": "\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["})").prompts[0])
          .size(),
      39u);
}

TEST(FieldsTest, ThePageHasTheTable) {
  std::ifstream page(LANEWAY_API_PAGE);
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  EXPECT_THAT(text, HasSubstr(FieldsTable())) << "put this table into docs/api.md";
}

}  // namespace
}  // namespace serve::openai
