#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "serve/llm/text/byte_letters.h"
#include "serve/llm/text/tokenizer.h"

namespace serve::llm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Object = nlohmann::json;

Object Parsed(const char* text) { return Object::parse(text); }

// 256 bytes, "ab", and a control token.
Object ByteLevel() {
  Object file = Parsed(R"({
    "added_tokens": [{"id": 257, "content": "<s>", "special": true, "normalized": false}],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    "post_processor": {"type": "ByteLevel"}, "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "merges": ["a b"], "vocab": {"ab": 256}}})");
  for (int byte = 0; byte < 256; ++byte)
    file["model"]["vocab"][LetterOfByte(static_cast<uint8_t>(byte))] = byte;
  return file;
}

Object SentencePiece() {
  return Parsed(R"({
    "added_tokens": [{"id": 0, "content": "<unk>", "special": true, "normalized": false},
                     {"id": 1, "content": "<s>", "special": true, "normalized": false}],
    "normalizer": {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "\u2581"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
    "post_processor": {"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A"}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
    "decoder": {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
        {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    "model": {"type": "BPE", "byte_fallback": true, "fuse_unk": true, "unk_token": "<unk>",
        "vocab": {"<unk>": 0, "<s>": 1, "<0x0A>": 2, "\u2581": 3, "a": 4, "\u2581a": 5},
        "merges": [["\u2581", "a"]]}})");
}

absl::StatusOr<Tokenizer> Made(const Object& file) {
  return Tokenizer::OfJsonUntrusted(file.dump());
}

std::vector<int32_t> TokensOf(const Object& file, std::string_view text) {
  const absl::StatusOr<Tokenizer> tokenizer = Made(file);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  if (!tokenizer.ok()) return {};
  return *tokenizer->Encode(text, ControlTokens::kParsed);
}

std::string WhyNot(const Object& file) { return std::string(Made(file).status().message()); }

TEST(TokenizerJsonTest, BytesAreMergedWithinPieces) {
  EXPECT_THAT(TokensOf(ByteLevel(), "ab ab<s>"), ElementsAre(256, ' ', 256, 257));
  EXPECT_THAT(*Made(ByteLevel())->Encode("<s>", ControlTokens::kAsText),
              ElementsAre('<', 's', '>'));
  EXPECT_EQ(Made(ByteLevel())->BytesOf(257), "<s>");
  Object pairs = ByteLevel();
  pairs["model"]["merges"] = Parsed(R"([["a", "b"]])");
  EXPECT_THAT(TokensOf(pairs, "ab"), ElementsAre(256));
}

TEST(TokenizerJsonTest, CharactersAreMergedAndMarked) {
  EXPECT_THAT(TokensOf(SentencePiece(), "a a\nz"), ElementsAre(1, 5, 5, 2, 0));
  EXPECT_THAT(TokensOf(SentencePiece(), ""), ElementsAre(1));
  const absl::StatusOr<Tokenizer> tokenizer = Made(SentencePiece());
  EXPECT_TRUE(tokenizer->drops_first_space());
  EXPECT_EQ(tokenizer->BytesOf(5), " a");
  EXPECT_EQ(tokenizer->BytesOf(2), "\n");
  EXPECT_TRUE(tokenizer->IsControl(0));
}

TEST(TokenizerJsonTest, MetaspaceMarksAsItsSchemeSays) {
  Object file = SentencePiece();
  file.erase("normalizer");
  file.erase("post_processor");
  file["pre_tokenizer"] = Parsed(R"({"type": "Metaspace", "replacement": "\u2581",
                                     "prepend_scheme": "first", "split": false})");
  EXPECT_THAT(TokensOf(file, "a a"), ElementsAre(5, 5));
  EXPECT_THAT(TokensOf(file, "<s>a a"), ElementsAre(1, 4, 5));
  file["pre_tokenizer"]["prepend_scheme"] = "always";
  EXPECT_THAT(TokensOf(file, "<s>a a"), ElementsAre(1, 5, 5));
  EXPECT_THAT(TokensOf(file, ""), ElementsAre());
  file["pre_tokenizer"]["prepend_scheme"] = "never";
  EXPECT_THAT(TokensOf(file, "a a"), ElementsAre(4, 5));
}

TEST(TokenizerJsonTest, AddedTokensAreLookedForInTheirForm) {
  Object file = ByteLevel();
  file["normalizer"] = Parsed(R"({"type": "NFC"})");
  file["added_tokens"].push_back(
      Parsed(R"({"id": 258, "content": "e\u0301", "special": false, "normalized": true})"));
  file["added_tokens"].push_back(
      Parsed(R"({"id": 259, "content": "o\u0301", "special": false, "normalized": false})"));
  EXPECT_THAT(TokensOf(file, "\u00e9"), ElementsAre(258));
  EXPECT_THAT(TokensOf(file, "e\u0301"), ElementsAre(258));
  EXPECT_THAT(TokensOf(file, "o\u0301"), ElementsAre(259));
  EXPECT_THAT(TokensOf(file, "\u00f3"), ElementsAre(0xc3, 0xb3));
  file["added_tokens"][1]["rstrip"] = true;
  file["added_tokens"][1]["lstrip"] = true;
  EXPECT_THAT(TokensOf(file, "a \u00e9 b"), ElementsAre('a', 258, 'b'));
}

TEST(TokenizerJsonTest, SplitsApplyInTurn) {
  Object file = ByteLevel();
  file["pre_tokenizer"] = Parsed(R"({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"String": "b"}, "behavior": "Isolated", "invert": false},
      {"type": "Split", "pattern": {"Regex": "x+"}, "behavior": "Removed", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})");
  EXPECT_THAT(TokensOf(file, "abxxa"), ElementsAre('a', 'b', 'a'));
  file["pre_tokenizer"]["pretokenizers"][1]["invert"] = true;
  EXPECT_THAT(TokensOf(file, "abxxa"), ElementsAre('x', 'x'));
}

TEST(TokenizerJsonTest, PartsThatAreNotKnownAreRefused) {
  const std::tuple<const char*, const char*, const char*> parts[] = {
      {"/normalizer", R"({"type": "Precompiled"})",
       "normalizer that is not supported (Precompiled)"},
      {"/normalizer", R"({"type": "Replace", "pattern": {"Regex": " +"}, "content": " "})",
       "Replace"},
      {"/pre_tokenizer", R"({"type": "Punctuation"})", "(Punctuation)"},
      {"/pre_tokenizer", R"({"type": "ByteLevel"})", "add_prefix_space"},
      {"/pre_tokenizer",
       R"({"type": "Split", "pattern": {"String": "a"}, "behavior": "Contiguous"})",
       "(Split, Contiguous)"},
      {"/pre_tokenizer", R"({"type": "Split", "pattern": {}, "behavior": "Isolated"})",
       "by nothing"},
      {"/pre_tokenizer", "null", "decoder"},
      {"/decoder", "null", "decoder"},
      {"/decoder", R"({"type": "WordPiece"})", "(WordPiece)"},
      {"/post_processor", R"({"type": "BertProcessing"})", "(BertProcessing)"},
      {"/post_processor", R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A"}},
        {"SpecialToken": {"id": "<s>"}}]})",
       "other than a token before"},
      {"/model/type", R"("WordPiece")", "of kind WordPiece"},
      {"/model/dropout", "0.5", "(dropout)"},
      {"/model/end_of_word_suffix", R"("</w>")", "(end_of_word_suffix)"},
      {"/added_tokens/0/single_word", "true", "token that is not supported (<s>)"},
  };
  for (const auto& [place, value, why] : parts) {
    Object file = ByteLevel();
    file[Object::json_pointer(place)] = Parsed(value);
    EXPECT_THAT(WhyNot(file), HasSubstr(why)) << place;
  }
}

TEST(TokenizerJsonTest, BrokenFilesAreRefused) {
  const std::tuple<const char*, const char*, const char*> parts[] = {
      {"/model", "null", "no model"},
      {"/model/vocab", "{}", "no vocabulary"},
      {"/model/vocab/a", "-1", "the number -1"},
      {"/model/vocab/a", "100000000", "the number 100000000"},
      {"/model/vocab/a", "98", "two tokens have the number 98"},
      {"/model/vocab/a", R"("97")", "no number"},
      {"/model/merges", R"(["ab"])", "no pair"},
      {"/model/merges", R"(["a b c"])", "no pair"},
      {"/model/merges", R"([["a"]])", "no pair"},
      {"/model/merges", R"([["a", 1]])", "no pair"},
      {"/model/unk_token", R"("<unk>")", "none of its own"},
      {"/added_tokens/0/id", "97", "two tokens"},
      {"/added_tokens/0/id", "-1", "no number"},
      {"/added_tokens/0/content", R"("")", "no text"},
  };
  for (const auto& [place, value, why] : parts) {
    Object file = ByteLevel();
    file[Object::json_pointer(place)] = Parsed(value);
    EXPECT_THAT(WhyNot(file), HasSubstr(why)) << place << value;
  }
  EXPECT_THAT(std::string(Tokenizer::OfJsonUntrusted("[").status().message()),
              HasSubstr("damaged"));
  EXPECT_THAT(std::string(Tokenizer::OfJsonUntrusted("[]").status().message()),
              HasSubstr("damaged"));
  Object first = SentencePiece();
  first["post_processor"]["special_tokens"]["<s>"]["ids"] = {6};
  EXPECT_THAT(WhyNot(first), HasSubstr("first token"));
}

}  // namespace
}  // namespace serve::llm
