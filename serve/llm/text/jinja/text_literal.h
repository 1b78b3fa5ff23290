// Text literals as Python spells them: "\n", "\x41", "\u00e9".
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace serve::llm::jinja {

// `quoted` is what stands between the quotes. A failure says which escape is refused.
absl::StatusOr<std::string> UnescapedUntrusted(std::string_view quoted);

// As repr() writes a text.
std::string Quoted(std::string_view text);

}  // namespace serve::llm::jinja
