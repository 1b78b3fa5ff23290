// Tokens that are cut out of a text before it is split: marks of turns, and what a tokenizer's
// makers added. Where several begin at one place, the longest counts.
//
// Thread safety: const methods from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace serve::llm {

inline constexpr size_t kSpecialTokenBytesMax = 512;

enum class ControlTokens {
  kAsText,  // spelled-out control tokens are ordinary text
  kParsed,
};

struct SpecialToken {
  int32_t token;
  bool control;              // counts only where the caller says so
  bool strips_left = false;  // takes the white space beside it
  bool strips_right = false;
};

struct SpecialMatch {
  size_t begin;
  size_t end;
  int32_t token;
};

class SpecialTokens {
 public:
  // A text that is there already stays as it is. REQUIRES: `text` is not empty, and not longer than
  // kSpecialTokenBytesMax.
  void Add(std::string_view text, const SpecialToken& special);

  // The next one from `from` on. Nothing: there is none. REQUIRES: from <= text.size().
  std::optional<SpecialMatch> Next(std::string_view text, size_t from, ControlTokens control) const;

 private:
  std::optional<SpecialMatch> At(std::string_view text, size_t at, ControlTokens control) const;

  absl::flat_hash_map<std::string, SpecialToken> tokens_;
  std::vector<size_t> lengths_of_first_[256];  // by the first byte, the longest first
};

}  // namespace serve::llm
