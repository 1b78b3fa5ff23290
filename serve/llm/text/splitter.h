// Cuts text into the pieces within which tokens are merged. A stage is a regular expression: its
// matches, and what lies between them, are pieces. Stages apply in turn, each to the pieces of the
// stage before: one expression of all of them would cut otherwise ("a  1").
//
// Expressions are those of Oniguruma as tokenizers use them, run by PCRE2. `\s` is Unicode's white
// space, which PCRE2's own is not (U+180E). Expressions may come from a file: their length, and the
// steps that a match may take, are bounded.
//
// Thread safety: const methods from any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace serve::llm {

class Splitter {
 public:
  // A failure's message is the end of a sentence that begins with the file's name.
  static absl::StatusOr<Splitter> MakeUntrusted(const std::vector<std::string>& stages);

  // Views into `text`, which joined are the text. Refused: text that is no UTF-8, or for which an
  // expression takes too many steps.
  absl::StatusOr<std::vector<std::string_view>> Split(std::string_view text) const;

 private:
  struct Expression;
  std::vector<std::shared_ptr<const Expression>> stages_;
};

}  // namespace serve::llm
