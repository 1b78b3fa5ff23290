// What a tokenizer is made of, as a model's files say it. What is read here is of the right form;
// whether the parts make a tokenizer is checked where one is made of them (tokenizer.h).
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "serve/llm/format/gguf.h"
#include "serve/llm/text/byte_pairs.h"
#include "serve/llm/text/normaliser.h"
#include "serve/llm/text/splitter.h"

namespace serve::llm {

inline constexpr size_t kTokensMax = size_t{1} << 24;

enum class TokenKind : uint8_t {
  kText,
  kControl,      // no text of a document
  kUserDefined,  // text that is always one token
  kByte,         // "<0x0A>"
};

// A token of kControl or kUserDefined that is cut out of texts.
struct CutToken {
  int64_t token;
  bool normalised = false;  // looked for when the text is in its normal form, in its own
  bool strips_left = false;
  bool strips_right = false;
};

struct TokenizerParts {
  std::vector<std::string> tokens;  // by number; text in letters of bytes where pairs.byte_level
  std::vector<TokenKind> kinds;     // as many
  std::vector<CutToken> cut;
  std::vector<TextStep> normal;  // before tokens that are cut from the normal form
  std::vector<TextStep> marks;   // after them
  std::vector<SplitStage> stages;
  std::vector<TokenMerge> merges;
  PairRules pairs;
  std::optional<int64_t> unknown;  // goes into `pairs` once it is checked
  std::optional<int64_t> first;    // the token before each text
  bool drops_first_space = false;
};

// Failures are ends of sentences that begin with the file's name.
absl::StatusOr<TokenizerParts> TokenizerPartsOfGguf(const Gguf& gguf);
absl::StatusOr<TokenizerParts> TokenizerPartsOfJsonUntrusted(std::string_view tokenizer_json);

}  // namespace serve::llm
