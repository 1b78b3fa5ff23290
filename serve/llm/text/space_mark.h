// The character that stands for a space in vocabularies of SentencePiece (U+2581).
// Thread safety: a constant.
#pragma once

#include <string_view>

namespace serve::llm {

inline constexpr std::string_view kSpaceMark = "\xe2\x96\x81";

}  // namespace serve::llm
