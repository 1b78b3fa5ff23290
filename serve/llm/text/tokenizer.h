// Text as tokens and back, from the metadata of a GGUF file or from a tokenizer.json.
//
// Special tokens are cut out of the text first, the longest where several begin; what is between
// them is brought into a normal form, split into pieces (splitter.h), and each piece is merged
// (byte_pairs.h). Control tokens (ends of turns) count only where the caller says so: a prompt of a
// stranger may spell them.
//
// Thread safety: const methods from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "serve/llm/format/gguf.h"
#include "serve/llm/text/byte_pairs.h"
#include "serve/llm/text/normaliser.h"
#include "serve/llm/text/special_tokens.h"
#include "serve/llm/text/splitter.h"
#include "serve/llm/text/tokenizer_parts.h"

namespace serve::llm {

// Whether tokens begin with the one that the tokenizer wants before each text.
enum class FirstToken {
  kAdded,
  kLeftOut,  // the text has it already, as those of chat templates do
};

class Tokenizer {
 public:
  // Failures are ends of sentences that begin with the file's name.
  static absl::StatusOr<Tokenizer> OfGguf(const Gguf& gguf);
  static absl::StatusOr<Tokenizer> OfJsonUntrusted(std::string_view tokenizer_json);
  static absl::StatusOr<Tokenizer> MakeUntrusted(TokenizerParts parts);

  // Refused: text that is no UTF-8, or that takes the tokenizer's expression too many steps.
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text, ControlTokens control,
                                              FirstToken first = FirstToken::kAdded) const;

  // Numbers that have no token, up to `tokens`, stand for no text: layers know more tokens than a
  // tokenizer where their matrices are padded.
  void GrowTo(size_t tokens);

  size_t size() const { return bytes_.size(); }
  // REQUIRES: 0 <= token < size(). Bytes of one token need not be whole characters.
  std::string_view BytesOf(int32_t token) const { return bytes_[static_cast<size_t>(token)]; }
  bool IsControl(int32_t token) const {
    return kinds_[static_cast<size_t>(token)] == TokenKind::kControl;
  }
  std::optional<int32_t> first() const { return first_; }
  // Whether a space with which a whole text begins is the tokenizer's own, and no part of it.
  bool drops_first_space() const { return drops_first_space_; }

 private:
  // What is between special tokens, and whether the text begins there.
  using Between = absl::FunctionRef<absl::Status(std::string_view text, bool begins)>;

  Tokenizer(BytePairs pairs, Splitter splitter)
      : pairs_(std::move(pairs)), splitter_(std::move(splitter)) {}

  absl::Status AddSpecial(const CutToken& cut, const std::string& text);
  absl::Status AppendText(std::string_view text, bool begins, std::vector<int32_t>* tokens) const;

  static absl::Status CutOut(const SpecialTokens& specials, std::string_view text,
                             ControlTokens control, Between between, std::vector<int32_t>* tokens);

  BytePairs pairs_;
  Splitter splitter_;
  std::vector<TextStep> normal_;
  std::vector<TextStep> marks_;
  SpecialTokens specials_;
  SpecialTokens specials_of_normal_form_;
  std::vector<std::string> bytes_;
  std::vector<TokenKind> kinds_;
  std::optional<int32_t> first_;
  bool drops_first_space_ = false;
};

}  // namespace serve::llm
