#include "serve/llm/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/llm/text/byte_letters.h"
#include "tests/serve/llm/text/made_tokenizer.h"

namespace serve::llm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// 256 bytes, then "ab", "abab", and special tokens.
std::vector<std::string> Vocabulary() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(LetterOfByte(static_cast<uint8_t>(byte)));
  for (const char* const more : {"ab", "abab", "<s>", "<s>>", "<user>"}) tokens.emplace_back(more);
  return tokens;
}

GgufWriter Parts(const std::string& pre = "gpt-2") {
  std::vector<int32_t> kinds(256 + 5, 1);
  kinds[258] = kinds[259] = 3;
  kinds[260] = 4;
  GgufWriter writer;
  writer.Word("tokenizer.ggml.model", "gpt2")
      .Word("tokenizer.ggml.pre", pre)
      .Words("tokenizer.ggml.tokens", Vocabulary())
      .Words("tokenizer.ggml.merges", {"a b", "ab ab"})
      .Numbers("tokenizer.ggml.token_type", kinds);
  return writer;
}

TEST(TokenizerTest, TextIsMergedWithinPieces) {
  const absl::StatusOr<Tokenizer> tokenizer = Made(Parts());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(*tokenizer->Encode("abab ab", ControlTokens::kParsed), ElementsAre(257, ' ', 256));
  EXPECT_EQ(tokenizer->BytesOf(' '), " ");
  EXPECT_EQ(tokenizer->BytesOf(257), "abab");
}

TEST(TokenizerTest, TheLongestSpecialTokenIsCutOut) {
  const absl::StatusOr<Tokenizer> tokenizer = Made(Parts());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(*tokenizer->Encode("ab<s>>ab<s><user>", ControlTokens::kParsed),
              ElementsAre(256, 259, 256, 258, 260));
  // Spelled by a stranger, control tokens are text; what the user defined is not.
  EXPECT_THAT(*tokenizer->Encode("<s><user>", ControlTokens::kAsText),
              ElementsAre('<', 's', '>', 260));
  EXPECT_TRUE(tokenizer->IsControl(258));
  EXPECT_FALSE(tokenizer->IsControl(260));
}

TEST(TokenizerTest, AFirstTokenIsAddedWhereTheFileSaysSo) {
  GgufWriter with = Parts();
  with.Key("tokenizer.ggml.add_bos_token", GgufType::kBool, "\1")
      .Number("tokenizer.ggml.bos_token_id", 258);
  EXPECT_THAT(*Made(with)->Encode("ab", ControlTokens::kParsed), ElementsAre(258, 256));
  EXPECT_THAT(*Made(with)->Encode("ab", ControlTokens::kParsed, FirstToken::kLeftOut),
              ElementsAre(256));
  GgufWriter llama = Parts("llama-bpe");
  llama.Number("tokenizer.ggml.bos_token_id", 258);
  EXPECT_EQ(Made(llama)->first(), 258);
  GgufWriter none = Parts("llama-bpe");
  none.Key("tokenizer.ggml.add_bos_token", GgufType::kBool, std::string(1, '\0'));
  EXPECT_EQ(Made(none)->first(), std::nullopt);
}

TEST(TokenizerTest, BrokenTokenizersAreRefused) {
  EXPECT_THAT(WhyNot(GgufWriter()), HasSubstr("no tokenizer"));
  EXPECT_THAT(WhyNot(Parts("unheard-of")), HasSubstr("not known (unheard-of)"));
  GgufWriter other;
  other.Word("tokenizer.ggml.model", "bert").Words("tokenizer.ggml.tokens", {"a"});
  EXPECT_THAT(WhyNot(other), HasSubstr("of kind bert"));
  GgufWriter kinds;
  kinds.Word("tokenizer.ggml.model", "gpt2").Word("tokenizer.ggml.pre", "gpt-2");
  kinds.Words("tokenizer.ggml.tokens", {"a"}).Numbers("tokenizer.ggml.token_type", {1, 1});
  EXPECT_THAT(WhyNot(kinds), HasSubstr("differ"));
  GgufWriter first = Parts("llama-bpe");
  first.Number("tokenizer.ggml.bos_token_id", 261);
  EXPECT_THAT(WhyNot(first), HasSubstr("first token"));
  for (const char* const merge : {"ab", " ab", "ab ", "a b c", ""}) {
    GgufWriter merges;
    merges.Word("tokenizer.ggml.model", "gpt2").Word("tokenizer.ggml.pre", "gpt-2");
    merges.Words("tokenizer.ggml.tokens", {"a", "b", "ab"}).Words("tokenizer.ggml.merges", {merge});
    EXPECT_THAT(WhyNot(merges), HasSubstr("no pair")) << merge;
  }
}

}  // namespace
}  // namespace serve::llm
