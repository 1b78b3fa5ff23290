// Cuts text into the pieces within which tokens are merged. A stage is a regular expression: its
// matches, and what lies between them, are pieces. Stages apply in turn, each to the pieces of the
// stage before: one expression of all of them would cut otherwise ("a  1").
//
// Expressions may come from a file, and texts from anywhere, so what both cost together is bounded.
// A match is tried at each place with few steps and a short window of the text, and with twice as
// many when these did not suffice; the product of both is taken from the text's budget. The outcome
// does not depend on the machine: a text is refused always or never.
//
// Thread safety: const methods from any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace serve::llm {

enum class KeptPieces {
  kAll,
  kMatches,
  kBetween,  // what lies between matches
};

struct SplitStage {
  std::string expression;  // in Oniguruma's syntax (expression.h)
  KeptPieces kept = KeptPieces::kAll;
};

class Splitter {
 public:
  // A failure's message is the end of a sentence that begins with the file's name.
  static absl::StatusOr<Splitter> MakeUntrusted(const std::vector<SplitStage>& stages);

  // Views into `text`; where all stages keep all, joined they are the text. Refused: text that is
  // no UTF-8, or for which an expression takes too many steps.
  absl::StatusOr<std::vector<std::string_view>> Split(std::string_view text) const;

 private:
  struct Expression;
  std::vector<std::shared_ptr<const Expression>> stages_;
};

}  // namespace serve::llm
