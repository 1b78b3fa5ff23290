// Tokenizers of SentencePiece from GGUF files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "serve/llm/text/tokenizer.h"
#include "tests/harness/seed.h"
#include "tests/serve/llm/text/made_tokenizer.h"

namespace serve::llm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Piece {
  std::string text;
  float score = 0;
  int32_t kind = 1;
};

GgufWriter PartsOf(const std::vector<Piece>& pieces) {
  std::vector<std::string> texts;
  std::vector<int32_t> kinds;
  std::string scores = GgufWriter::Raw(static_cast<uint32_t>(GgufType::kFloat32)) +
                       GgufWriter::Raw<uint64_t>(pieces.size());
  for (const Piece& piece : pieces) {
    texts.push_back(piece.text);
    kinds.push_back(piece.kind);
    scores += GgufWriter::Raw(piece.score);
  }
  GgufWriter writer;
  writer.Word("tokenizer.ggml.model", "llama")
      .Words("tokenizer.ggml.tokens", texts)
      .Numbers("tokenizer.ggml.token_type", kinds)
      .Key("tokenizer.ggml.scores", GgufType::kArray, scores);
  return writer;
}

// "<unk>", "<s>", two bytes, a space, and "a", "b" with what they make.
std::vector<Piece> Pieces() {
  return {{"<unk>", 0, 2}, {"<s>", 0, 3}, {"<0xC3>", 0, 6}, {"<0xA9>", 0, 6}, {"\u2581", -9},
          {"a", -9},       {"b", -9},     {"ab", -2},       {"\u2581a", -1},  {"ba", -3}};
}

GgufWriter With(const char* key, bool value) {
  GgufWriter writer = PartsOf(Pieces());
  writer.Key(key, GgufType::kBool, std::string(1, value ? '\1' : '\0'));
  return writer;
}

TEST(SentencePieceTest, TheHighestScoreIsMergedFirst) {
  const absl::StatusOr<Tokenizer> tokenizer = Made(PartsOf(Pieces()));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  // A mark comes before the text, and takes the first "a" of "ab".
  EXPECT_THAT(*tokenizer->Encode("ab", ControlTokens::kParsed), ElementsAre(1, 8, 6));
  EXPECT_THAT(*tokenizer->Encode("bab\u00e9", ControlTokens::kParsed),
              ElementsAre(1, 4, 6, 7, 2, 3));
  EXPECT_THAT(*tokenizer->Encode("z<s>", ControlTokens::kParsed), ElementsAre(1, 4, 0, 1));
  EXPECT_TRUE(tokenizer->drops_first_space());
  EXPECT_EQ(tokenizer->BytesOf(8), " a");
  EXPECT_EQ(tokenizer->BytesOf(3), "\xa9");
}

TEST(SentencePieceTest, TheFileSaysWhatComesFirst) {
  EXPECT_THAT(
      *Made(With("tokenizer.ggml.add_space_prefix", false))->Encode("ab", ControlTokens::kParsed),
      ElementsAre(1, 7));
  EXPECT_THAT(
      *Made(With("tokenizer.ggml.add_bos_token", false))->Encode("b", ControlTokens::kParsed),
      ElementsAre(4, 6));
}

TEST(SentencePieceTest, WhatIsNotSupportedIsRefused) {
  EXPECT_THAT(WhyNot(With("tokenizer.ggml.add_eos_token", true)), HasSubstr("ends each text"));
  EXPECT_THAT(WhyNot(With("tokenizer.ggml.remove_extra_whitespaces", true)),
              HasSubstr("takes out spaces"));
  EXPECT_THAT(WhyNot(PartsOf({{"<unk>"}, {"<s>"}, {std::string(600, 'a')}})),
              HasSubstr("over 512"));
  EXPECT_THAT(WhyNot(PartsOf({{"<unk>"}, {"a", NAN}})), HasSubstr("without a score"));
  EXPECT_THAT(WhyNot(PartsOf({{"<unk>"}})), HasSubstr("first token"));
  GgufWriter without;
  without.Word("tokenizer.ggml.model", "llama").Words("tokenizer.ggml.tokens", {"a", "b"});
  EXPECT_THAT(WhyNot(without), HasSubstr("without a score"));
}

// Looks at all neighbours for each merge; the leftmost of those that score the same.
std::vector<std::string> MergedByScore(const std::string& text,
                                       const std::map<std::string, float>& scores) {
  std::vector<std::string> parts;
  for (const char letter : text) parts.emplace_back(1, letter);
  while (true) {
    size_t best = parts.size();
    for (size_t at = 0; at + 1 < parts.size(); ++at) {
      const auto joined = scores.find(parts[at] + parts[at + 1]);
      if (joined == scores.end()) continue;
      if (best == parts.size() ||
          joined->second > scores.find(parts[best] + parts[best + 1])->second)
        best = at;
    }
    if (best == parts.size()) return parts;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
}

TEST(SentencePieceTest, MergesAreThoseOfTheSlowWay) {
  std::mt19937_64 random(harness::Seed());
  const auto text_of = [&random](size_t length) {
    std::string text(length, 'a');
    for (char& letter : text) letter = static_cast<char>('a' + random() % 2);
    return text;
  };
  for (int round = 0; round < 300; ++round) {
    std::map<std::string, float> scores = {{"a", -9}, {"b", -9}};
    while (scores.size() < 12)
      scores.emplace(text_of(2 + random() % 4), -static_cast<float>(random() % 8));
    std::vector<Piece> pieces = {{"<unk>", 0, 2}};
    for (const auto& [text, score] : scores) pieces.push_back({text, score});
    GgufWriter writer = PartsOf(pieces);
    for (const char* const key :
         {"tokenizer.ggml.add_space_prefix", "tokenizer.ggml.add_bos_token"})
      writer.Key(key, GgufType::kBool, std::string(1, '\0'));
    const absl::StatusOr<Tokenizer> tokenizer = Made(writer);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    const std::string text = text_of(random() % 60);
    std::vector<std::string> fast;
    const absl::StatusOr<std::vector<int32_t>> tokens =
        tokenizer->Encode(text, ControlTokens::kParsed);
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    for (const int32_t token : *tokens) fast.emplace_back(tokenizer->BytesOf(token));
    ASSERT_EQ(fast, MergedByScore(text, scores)) << text;
  }
}

}  // namespace
}  // namespace serve::llm
