// The letters that stand for bytes in vocabularies of byte-level BPE (GPT-2): printable bytes of
// Latin-1 stand for themselves, the others for the letters from U+0100 on, in order. So every token
// is text without spaces, whatever its bytes are.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace serve::llm {

// In UTF-8.
std::string LetterOfByte(uint8_t byte);

// The bytes of a token. A letter that stands for no byte is kept as it is.
std::string BytesOfLetters(std::string_view letters);

}  // namespace serve::llm
