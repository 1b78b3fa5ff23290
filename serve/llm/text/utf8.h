// Characters of UTF-8, as the Unicode standard bounds them: nothing too long, no surrogates,
// nothing over U+10FFFF. Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace serve::llm {

// Bytes of a character whose first byte is this; 0: no character begins so.
size_t CharacterLength(uint8_t first);

// How many of the first bytes of `text` may begin one character: 0 for none, and at most the
// character's length.
size_t CharacterPrefix(std::string_view text);

// Bytes of the character that `text` begins with; 0: it begins with no whole one.
size_t CharacterBytes(std::string_view text);

bool IsUtf8(std::string_view text);

// REQUIRES: `character` is one whole character.
uint32_t CodePointOf(std::string_view character);

// REQUIRES: a code point that is no surrogate.
std::string CharacterOf(uint32_t code_point);

// White space as Unicode has it.
bool IsWhiteSpace(uint32_t code_point);

}  // namespace serve::llm
