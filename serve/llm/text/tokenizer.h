// Text as tokens and back: byte-level BPE, from the metadata of a GGUF file.
//
// Special tokens are cut out of the text first, the longest where several begin; what is between
// them is split into pieces (splitter.h), and each piece is merged (byte_pairs.h). Control tokens
// (ends of turns) count only where the caller says so: a prompt of a stranger may spell them.
//
// Thread safety: const methods from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "serve/llm/format/gguf.h"
#include "serve/llm/text/byte_pairs.h"
#include "serve/llm/text/splitter.h"

namespace serve::llm {

enum class TokenKind : uint8_t {
  kText,
  kControl,      // no text of a document
  kUserDefined,  // text that is always one token
};

enum class ControlTokens {
  kAsText,  // spelled-out control tokens are ordinary text
  kParsed,
};

// What a tokenizer is made of, as files say it: nothing is checked.
struct TokenizerParts {
  std::vector<std::string> tokens;  // by number; of kText in letters of bytes
  std::vector<TokenKind> kinds;     // as many
  std::vector<std::pair<std::string, std::string>> merges;
  std::vector<SplitStage> stages;
  bool whole_pieces = false;
  std::optional<int64_t> first;  // the token before each text
};

class Tokenizer {
 public:
  // Failures are ends of sentences that begin with the file's name.
  static absl::StatusOr<Tokenizer> OfGguf(const Gguf& gguf);
  static absl::StatusOr<Tokenizer> MakeUntrusted(TokenizerParts parts);

  // Refused: text that is no UTF-8, or that takes the tokenizer's expression too many steps.
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text, ControlTokens control) const;

  size_t size() const { return bytes_.size(); }
  // REQUIRES: 0 <= token < size(). Bytes of one token need not be whole characters.
  std::string_view BytesOf(int32_t token) const { return bytes_[static_cast<size_t>(token)]; }
  bool IsControl(int32_t token) const {
    return kinds_[static_cast<size_t>(token)] == TokenKind::kControl;
  }
  std::optional<int32_t> first() const { return first_; }

 private:
  Tokenizer(BytePairs pairs, Splitter splitter)
      : pairs_(std::move(pairs)), splitter_(std::move(splitter)) {}

  void AddSpecial(int32_t token);
  std::optional<int32_t> SpecialAt(std::string_view text, ControlTokens control) const;
  absl::Status AppendText(std::string_view text, std::vector<int32_t>* tokens) const;

  BytePairs pairs_;
  Splitter splitter_;
  std::vector<std::string> bytes_;
  std::vector<TokenKind> kinds_;
  std::optional<int32_t> first_;
  std::vector<int32_t> special_of_letter_[256];  // by the first byte, the longest first
};

}  // namespace serve::llm
