#include "serve/llm/text/detokenizer.h"

#include <algorithm>
#include <cstdint>

namespace serve::llm {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

struct Bounds {
  uint8_t low;
  uint8_t high;
};

// Bytes of the character that begins with `first`; 0: none does.
size_t LengthOf(uint8_t first) {
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

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

// How many bytes of `text`, at most `length`, may begin one character.
size_t GoodBytes(std::string_view text, size_t length) {
  size_t good = 1;
  while (good < std::min(length, text.size())) {
    const uint8_t byte = static_cast<uint8_t>(text[good]);
    const Bounds bounds =
        good == 1 ? BoundsOfSecond(static_cast<uint8_t>(text[0])) : Bounds{0x80, 0xbf};
    if (byte < bounds.low || byte > bounds.high) break;
    ++good;
  }
  return good;
}

}  // namespace

std::string Detokenizer::Add(std::string_view bytes) {
  held_.append(bytes);
  std::string text;
  size_t at = 0;
  while (at < held_.size()) {
    const std::string_view rest = std::string_view(held_).substr(at);
    const size_t length = LengthOf(static_cast<uint8_t>(rest[0]));
    const size_t good = length == 0 ? 1 : GoodBytes(rest, length);
    if (good < length && good == rest.size()) break;  // whole when more bytes come
    text.append(good == length ? rest.substr(0, length) : kReplacement);
    at += good;
  }
  held_.erase(0, at);
  return text;
}

std::string Detokenizer::Flush() {
  const bool incomplete = !held_.empty();
  held_.clear();
  return std::string(incomplete ? kReplacement : "");
}

}  // namespace serve::llm
