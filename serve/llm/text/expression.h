// Expressions of tokenizers for PCRE2. Tokenizers run theirs by Oniguruma, whose syntax is nearly
// PCRE2's; where both take the same spelling for something else, the expression is spelled anew
// (`\s`, `\d`, `\w` are Unicode's) or refused (`\h`, `x{1,3}+`, classes within classes), so that no
// text is split otherwise than the tokenizer's makers split it.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace serve::llm {

inline constexpr size_t kExpressionBytesMax = 4096;

// A failure's message is the end of a sentence that begins with the file's name.
absl::StatusOr<std::string> Pcre2OfOnigurumaUntrusted(std::string_view expression);

// An expression that matches this text alone.
std::string ExpressionOfText(std::string_view text);

}  // namespace serve::llm
