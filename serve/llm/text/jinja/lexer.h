// A template as tokens: text between tags, and what stands in them. White space around tags is
// taken away here, as Jinja does with trim_blocks and lstrip_blocks, and by the signs of tags ({%-,
// -}}). Comments leave nothing.
// https://jinja.palletsprojects.com/en/stable/templates/#whitespace-control
//
// Thread safety: a function without state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace serve::llm::jinja {

inline constexpr size_t kTemplateBytesMax = size_t{256} << 10;

enum class TokenKind {
  kData,  // text outside of tags
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kText,  // unescaped
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind;
  std::string text;
  int line;
};

// The last token is kEnd. A failure's message is the end of a sentence that begins with the
// template's name, such as "the chat template".
absl::StatusOr<std::vector<Token>> TokensOfUntrusted(std::string_view text);

}  // namespace serve::llm::jinja
