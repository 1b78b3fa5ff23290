// A template as statements: text, output, {% if %}, {% for %}, {% set %}, {% macro %}, {% break %},
// {% continue %}, and {% generation %}, which transformers adds. Other tags are refused by name.
//
// Thread safety: a function without state.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "serve/llm/text/jinja/syntax.h"

namespace serve::llm::jinja {

// A failure's message is the end of a sentence that begins with the template's name.
absl::StatusOr<Statements> ParseTemplateUntrusted(std::string_view text);

}  // namespace serve::llm::jinja
