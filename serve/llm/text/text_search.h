// Where a text lies within another, in time that grows with both lengths together and never with
// their product: texts are strangers'.
//
// Thread safety: functions without state.
#pragma once

#include <string_view>

namespace serve::llm {

// The first place from `from` on; npos: none. An empty text is found at `from`.
size_t FindText(std::string_view text, std::string_view part, size_t from = 0);
// The last place.
size_t FindLastText(std::string_view text, std::string_view part);

}  // namespace serve::llm
