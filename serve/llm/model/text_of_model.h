// Parts that the readers of both formats have in common. Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "serve/llm/model/model.h"

namespace serve::llm {

// Checks that `ends` are tokens of the model, and sorts them. `text` has what is known besides.
absl::StatusOr<ModelText> TextWithEnds(ModelText text, std::vector<uint64_t> ends,
                                       const Tokenizer& tokenizer);

// The tokenizer for logits of so many tokens. Refused: it has more tokens than that.
absl::StatusOr<Tokenizer> FitTokenizer(absl::StatusOr<Tokenizer> tokenizer,
                                       const absl::StatusOr<ModelSizes>& sizes);

}  // namespace serve::llm
