#include "serve/llm/text/utf8.h"

#include <algorithm>

namespace serve::llm {
namespace {

struct Bounds {
  uint8_t low;
  uint8_t high;
};

// The second byte's bounds shut out what is too long, surrogates, and what is over U+10FFFF.
Bounds BoundsOfSecond(uint8_t first) {
  switch (first) {
    case 0xe0:
      return {0xa0, 0xbf};
    case 0xed:
      return {0x80, 0x9f};
    case 0xf0:
      return {0x90, 0xbf};
    case 0xf4:
      return {0x80, 0x8f};
    default:
      return {0x80, 0xbf};
  }
}

char TailByte(uint32_t code_point, unsigned shift) {
  return static_cast<char>(0x80 | (code_point >> shift & 0x3f));
}

}  // namespace

size_t CharacterLength(uint8_t first) {
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

size_t CharacterPrefix(std::string_view text) {
  const size_t length = text.empty() ? 0 : CharacterLength(static_cast<uint8_t>(text[0]));
  size_t good = std::min<size_t>(length, 1);
  while (good < std::min(length, text.size())) {
    const uint8_t byte = static_cast<uint8_t>(text[good]);
    const Bounds bounds =
        good == 1 ? BoundsOfSecond(static_cast<uint8_t>(text[0])) : Bounds{0x80, 0xbf};
    if (byte < bounds.low || byte > bounds.high) break;
    ++good;
  }
  return good;
}

size_t CharacterBytes(std::string_view text) {
  const size_t good = CharacterPrefix(text);
  return good > 0 && good == CharacterLength(static_cast<uint8_t>(text[0])) ? good : 0;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

uint32_t CodePointOf(std::string_view character) {
  const uint32_t first = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return first;
  uint32_t code_point = first & (0x7fu >> character.size());
  for (const char tail : character.substr(1))
    code_point = code_point << 6 | (static_cast<uint8_t>(tail) & 0x3f);
  return code_point;
}

std::string CharacterOf(uint32_t code_point) {
  if (code_point < 0x80) return std::string(1, static_cast<char>(code_point));
  if (code_point < 0x800)
    return {static_cast<char>(0xc0 | code_point >> 6), TailByte(code_point, 0)};
  if (code_point < 0x10000)
    return {static_cast<char>(0xe0 | code_point >> 12), TailByte(code_point, 6),
            TailByte(code_point, 0)};
  return {static_cast<char>(0xf0 | code_point >> 18), TailByte(code_point, 12),
          TailByte(code_point, 6), TailByte(code_point, 0)};
}

bool IsWhiteSpace(uint32_t code_point) {
  return (code_point >= 0x9 && code_point <= 0xd) || code_point == 0x20 || code_point == 0x85 ||
         code_point == 0xa0 || code_point == 0x1680 ||
         (code_point >= 0x2000 && code_point <= 0x200a) || code_point == 0x2028 ||
         code_point == 0x2029 || code_point == 0x202f || code_point == 0x205f ||
         code_point == 0x3000;
}

}  // namespace serve::llm
