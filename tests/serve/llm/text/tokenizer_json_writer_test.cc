#include "serve/llm/text/tokenizer_json_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "serve/llm/text/byte_letters.h"
#include "serve/llm/text/known_splits.h"
#include "serve/llm/text/space_mark.h"
#include "serve/llm/text/tokenizer.h"
#include "tests/harness/seed.h"

namespace serve::llm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Object = nlohmann::json;

// Everything that parts say, a line each.
std::string Told(const TokenizerParts& parts) {
  std::ostringstream told;
  for (size_t i = 0; i < parts.tokens.size(); ++i)
    told << i << ": " << parts.tokens[i] << " of kind " << static_cast<int>(parts.kinds[i]) << "\n";
  for (const CutToken& cut : parts.cut)
    told << "cut " << cut.token << cut.normalised << cut.strips_left << cut.strips_right << "\n";
  for (const auto* const steps : {&parts.normal, &parts.marks}) {
    told << "steps\n";
    for (const TextStep& step : *steps)
      told << static_cast<int>(step.change) << " '" << step.from << "' '" << step.to << "'\n";
  }
  for (const SplitStage& stage : parts.stages)
    told << "split " << stage.expression << " keeps " << static_cast<int>(stage.kept) << "\n";
  for (const TokenMerge& merge : parts.merges)
    told << merge.rank << ": " << merge.left << " " << merge.right << "\n";
  const PairRules& pairs = parts.pairs;
  told << pairs.byte_level << pairs.whole_pieces << pairs.byte_fallback << pairs.fuse_unknown
       << " unknown " << parts.unknown.value_or(-1) << " first " << parts.first.value_or(-1)
       << " drops " << parts.drops_first_space << "\n";
  return told.str();
}

// 256 bytes, then "ab", "abab", and tokens that are cut out.
TokenizerParts ByteLevelParts() {
  TokenizerParts parts;
  for (int byte = 0; byte < 256; ++byte)
    parts.tokens.push_back(LetterOfByte(static_cast<uint8_t>(byte)));
  for (const char* const more : {"ab", "abab", "<s>", "<tool \"x\">"})
    parts.tokens.emplace_back(more);
  parts.kinds.assign(parts.tokens.size(), TokenKind::kText);
  parts.kinds[258] = TokenKind::kControl;
  parts.kinds[259] = TokenKind::kUserDefined;
  parts.cut = {{258}, {259}};
  parts.merges = {{"a", "b", 0}, {"ab", "ab", 1}};
  parts.stages = {{std::string(kSplitOfGpt2)}};
  return parts;
}

TokenizerParts SentencePieceParts() {
  TokenizerParts parts;
  const std::string mark(kSpaceMark);
  parts.tokens = {"<unk>", "<s>", "<0x0A>", mark, "a", "b", mark + "a", "ab", "aa"};
  parts.kinds.assign(parts.tokens.size(), TokenKind::kText);
  parts.kinds[0] = parts.kinds[1] = TokenKind::kControl;
  parts.kinds[2] = TokenKind::kByte;
  parts.cut = {{0}, {1}};
  parts.normal = {{TextChange::kPrepend, "", mark}, {TextChange::kReplace, " ", mark}};
  parts.pairs = {.byte_level = false, .byte_fallback = true};
  parts.merges = {{mark, "a", 0}, {"a", "b", 1}, {"a", "a", 2}};
  parts.unknown = 0;
  parts.first = 1;
  parts.drops_first_space = true;
  return parts;
}

Object Written(const TokenizerParts& parts) {
  const absl::StatusOr<std::string> text = TokenizerJson(parts);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? Object::parse(*text) : Object();
}

std::string WhyNotWritten(const TokenizerParts& parts) {
  return std::string(TokenizerJson(parts).status().message());
}

std::string ReadAgain(const TokenizerParts& parts) {
  const absl::StatusOr<TokenizerParts> read = TokenizerPartsOfJsonUntrusted(Written(parts).dump());
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? Told(*read) : "";
}

TEST(TokenizerJsonWriterTest, WhatIsWrittenIsReadAgain) {
  EXPECT_EQ(ReadAgain(ByteLevelParts()), Told(ByteLevelParts()));
  EXPECT_EQ(ReadAgain(SentencePieceParts()), Told(SentencePieceParts()));
}

// A made tokenizer with anything that a file of either format may say.
TokenizerParts RandomParts(std::mt19937_64* random) {
  const auto below = [random](uint64_t end) { return (*random)() % end; };
  const std::string mark(kSpaceMark);
  TokenizerParts parts = below(2) == 0 ? ByteLevelParts() : SentencePieceParts();
  parts.pairs.whole_pieces = below(2) == 0;
  parts.pairs.fuse_unknown = below(2) == 0;
  for (CutToken& cut : parts.cut) {
    cut.normalised = below(3) == 0;
    cut.strips_left = below(3) == 0;
    cut.strips_right = below(3) == 0;
  }
  const TextStep steps[] = {{TextChange::kNfc, "", ""},       {TextChange::kNfd, "", ""},
                            {TextChange::kNfkc, "", ""},      {TextChange::kNfkd, "", ""},
                            {TextChange::kReplace, "b", "a"}, {TextChange::kPrepend, "", "b"}};
  for (uint64_t left = below(3); left > 0; --left) parts.normal.push_back(steps[below(6)]);
  if (below(2) == 0) {
    parts.marks = {{TextChange::kReplace, " ", mark}};
    if (below(3) != 0)
      parts.marks.push_back(
          {below(2) == 0 ? TextChange::kPrependOnce : TextChange::kPrependFirst, "", mark});
  }
  const char* const expressions[] = {R"(\p{N}+)", R"("a\\b")", "[ab]{2}"};
  for (uint64_t left = below(3); left > 0; --left)
    parts.stages.push_back({expressions[below(3)], static_cast<KeptPieces>(below(3))});
  parts.drops_first_space = below(2) == 0;
  if (below(2) == 0) parts.first = static_cast<int64_t>(below(parts.tokens.size()));
  return parts;
}

TEST(TokenizerJsonWriterTest, AnyTokenizerMakesTheSameTokensAgain) {
  std::mt19937_64 random(harness::Seed());
  const char* const words[] = {"a",  "b",    "ab",      " ",           "  ",     "\n",
                               "1",  "23",   "<s>",     "\u00e9",      "<0x0A>", "\u2581",
                               "\"", "a\\b", "e\u0301", "<tool \"x\">"};
  for (int round = 0; round < 300; ++round) {
    const TokenizerParts parts = RandomParts(&random);
    const std::string written = Written(parts).dump();
    ASSERT_EQ(Told(*TokenizerPartsOfJsonUntrusted(written)), Told(parts)) << written;
    const absl::StatusOr<Tokenizer> original = Tokenizer::MakeUntrusted(parts);
    const absl::StatusOr<Tokenizer> again = Tokenizer::OfJsonUntrusted(written);
    ASSERT_TRUE(original.ok() && again.ok()) << original.status() << again.status();
    std::string text;
    for (uint64_t left = random() % 20; left > 0; --left) text += words[random() % 16];
    EXPECT_EQ(*again->Encode(text, ControlTokens::kParsed),
              *original->Encode(text, ControlTokens::kParsed))
        << text;
  }
}

TEST(TokenizerJsonWriterTest, MergesAreInTheOrderOfTheirRanks) {
  TokenizerParts parts = SentencePieceParts();
  // Of equal pairs the first counts, whatever its rank.
  parts.merges = {{"a", "b", 7}, {"a", "a", 2}, {"a", "b", 1}, {"\u2581", "a", 2}};
  const Object merges = Written(parts)["model"]["merges"];
  EXPECT_EQ(merges, Object::parse(R"([["a", "a"], ["▁", "a"], ["a", "b"]])"));
}

TEST(TokenizerJsonWriterTest, TokensOfNoTextAreLeftOut) {
  TokenizerParts parts = SentencePieceParts();
  for (const char* const more : {"", "\xff", "ab", "c", "a\xff"}) {
    parts.tokens.emplace_back(more);
    parts.kinds.push_back(TokenKind::kText);
  }
  parts.merges.push_back({"a", "\xff", 3});
  parts.kinds[10] = TokenKind::kControl;
  parts.cut.push_back({10});
  const Object written = Written(parts);
  EXPECT_EQ(written["model"]["vocab"]["ab"], 7);
  EXPECT_EQ(written["model"]["vocab"]["c"], 12);
  EXPECT_EQ(written["model"]["vocab"].size(), 10u);
  EXPECT_EQ(written["model"]["merges"].size(), 3u);
  EXPECT_EQ(written["added_tokens"].size(), 2u);
  EXPECT_TRUE(Tokenizer::OfJsonUntrusted(written.dump()).ok());
}

TEST(TokenizerJsonWriterTest, WhatTheFileCannotSayIsRefused) {
  TokenizerParts twice = SentencePieceParts();
  twice.tokens.emplace_back("<s>");
  twice.kinds.push_back(TokenKind::kText);
  EXPECT_THAT(WhyNotWritten(twice),
              HasSubstr("two tokens of one text (numbers 1 and 9), one of them"));
  TokenizerParts later = SentencePieceParts();
  later.tokens.emplace_back("ab");
  later.kinds.push_back(TokenKind::kUserDefined);
  later.cut.push_back({9});
  EXPECT_THAT(WhyNotWritten(later), HasSubstr("numbers 7 and 9"));
  TokenizerParts unknown = SentencePieceParts();
  unknown.tokens[0].clear();
  EXPECT_THAT(WhyNotWritten(unknown), HasSubstr("a token without text for what is unknown"));
  TokenizerParts marks = SentencePieceParts();
  marks.marks = {{TextChange::kReplace, "-", std::string(kSpaceMark)}};
  EXPECT_THAT(WhyNotWritten(marks), HasSubstr("marks other than those of spaces"));
  TokenizerParts normal = SentencePieceParts();
  normal.normal.push_back({TextChange::kPrependFirst, "", std::string(kSpaceMark)});
  EXPECT_THAT(WhyNotWritten(normal), HasSubstr("a mark in its normal form"));
}

TEST(TokenizerJsonWriterTest, TheConfigNamesSpecialTokens) {
  TokenizerSettings settings = {"<s>", "ab", "{{ bos_token }}\xff", 77};
  EXPECT_EQ(Object::parse(TokenizerConfigJson(SentencePieceParts(), settings)),
            Object({{"tokenizer_class", "PreTrainedTokenizerFast"},
                    {"clean_up_tokenization_spaces", false},
                    {"model_max_length", 77},
                    {"bos_token", "<s>"},
                    {"eos_token", "ab"},
                    {"unk_token", "<unk>"},
                    {"chat_template", "{{ bos_token }}\ufffd"}}));
  // Texts that are no tokens would be added by those who read them.
  settings = {"<none>", " a", "", 77};
  EXPECT_EQ(Object::parse(TokenizerConfigJson(ByteLevelParts(), settings)),
            Object({{"tokenizer_class", "PreTrainedTokenizerFast"},
                    {"clean_up_tokenization_spaces", false},
                    {"model_max_length", 77},
                    {"additional_special_tokens", {"<s>"}}}));
}

}  // namespace
}  // namespace serve::llm
