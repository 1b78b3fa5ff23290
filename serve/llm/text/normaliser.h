// What a tokenizer does to text before it splits it: Unicode's normal forms, replacements, and a
// mark before the text. Steps come from a file: what they may make of a text is bounded.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace serve::llm {

enum class TextChange {
  kNfc,
  kNfd,
  kNfkc,
  kNfkd,
  kReplace,       // each `from` by `to`
  kPrepend,       // `to` before what is not empty
  kPrependOnce,   // `to` before what does not begin with it
  kPrependFirst,  // as kPrependOnce, where the text itself begins
};

struct TextStep {
  TextChange change;
  std::string from;
  std::string to;
};

// `begins`: the whole text begins here, not only a part of it. Refused: a text that the steps make
// far longer. REQUIRES: valid UTF-8, as the steps' own texts are.
absl::StatusOr<std::string> Normalised(std::string_view text, const std::vector<TextStep>& steps,
                                       bool begins);

}  // namespace serve::llm
