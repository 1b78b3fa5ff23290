#include "serve/llm/text/byte_letters.h"

#include <array>
#include <optional>

namespace serve::llm {
namespace {

constexpr uint32_t kFirstOther = 0x100;

constexpr bool StandsForItself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
}

// Code points by byte.
constexpr std::array<uint32_t, 256> Letters() {
  std::array<uint32_t, 256> letters{};
  uint32_t other = kFirstOther;
  for (uint32_t byte = 0; byte < 256; ++byte)
    letters[byte] = StandsForItself(byte) ? byte : other++;
  return letters;
}
constexpr std::array<uint32_t, 256> kLetters = Letters();

// Bytes by code point; -1: the letter stands for none.
constexpr uint32_t kLettersEnd = 0x144;
constexpr std::array<int16_t, kLettersEnd> Bytes() {
  std::array<int16_t, kLettersEnd> bytes{};
  bytes.fill(-1);
  for (uint32_t byte = 0; byte < 256; ++byte) bytes[kLetters[byte]] = static_cast<int16_t>(byte);
  return bytes;
}
constexpr std::array<int16_t, kLettersEnd> kBytes = Bytes();

std::optional<uint8_t> ByteOf(uint32_t letter) {
  if (letter >= kLettersEnd || kBytes[letter] < 0) return std::nullopt;
  return static_cast<uint8_t>(kBytes[letter]);
}

}  // namespace

std::string LetterOfByte(uint8_t byte) {
  const uint32_t letter = kLetters[byte];
  if (letter < 0x80) return std::string(1, static_cast<char>(letter));
  return {static_cast<char>(0xc0 | letter >> 6), static_cast<char>(0x80 | (letter & 0x3f))};
}

std::string BytesOfLetters(std::string_view letters) {
  std::string bytes;
  for (size_t i = 0; i < letters.size(); ++i) {
    const uint32_t first = static_cast<uint8_t>(letters[i]);
    uint32_t letter = first;
    size_t more = 0;
    // All letters of bytes have one or two bytes in UTF-8.
    if (first >= 0xc2 && first < 0xe0 && i + 1 < letters.size()) {
      letter = (first & 0x1f) << 6 | (static_cast<uint8_t>(letters[i + 1]) & 0x3f);
      more = 1;
    }
    const std::optional<uint8_t> byte = first < 0x80 || more == 1 ? ByteOf(letter) : std::nullopt;
    if (byte.has_value()) {
      bytes.push_back(static_cast<char>(*byte));
    } else {
      bytes.append(letters.substr(i, more + 1));
    }
    i += more;
  }
  return bytes;
}

}  // namespace serve::llm
