#include "serve/llm/text/jinja/text_literal.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>

#include "serve/llm/text/jinja/sentence.h"
#include "serve/llm/text/letters.h"
#include "serve/llm/text/utf8.h"

namespace serve::llm::jinja {
namespace {

constexpr uint32_t kCodePointMax = 0x10ffff;

int DigitOf(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return 16;
}

// Reads exactly `count` digits of base 16, or up to `count` of base 8.
std::optional<uint32_t> ReadDigits(std::string_view text, size_t* at, size_t count, int base) {
  uint32_t value = 0;
  size_t read = 0;
  while (read < count && *at < text.size() && DigitOf(text[*at]) < base) {
    value = value * static_cast<uint32_t>(base) + static_cast<uint32_t>(DigitOf(text[*at]));
    ++*at;
    ++read;
  }
  return base == 16 && read < count ? std::nullopt : std::optional<uint32_t>(value);
}

// Of "\a", "\n" and their like; 0: the letter has no such meaning.
char ControlOf(char letter) {
  constexpr std::string_view kLetters = "abfnrtv\\'\"";
  constexpr std::string_view kControls = "\a\b\f\n\r\t\v\\'\"";
  const size_t index = kLetters.find(letter);
  return index == kLetters.npos ? '\0' : kControls[index];
}

// How many digits follow "\x", "\u", "\U"; 0: another letter.
size_t HexDigitsAfter(char letter) {
  return letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
}

}  // namespace

absl::StatusOr<std::string> UnescapedUntrusted(std::string_view quoted) {
  std::string text;
  for (size_t at = 0; at < quoted.size();) {
    if (quoted[at] != '\\' || at + 1 == quoted.size()) {
      text.push_back(quoted[at++]);
      continue;
    }
    const char letter = quoted[at + 1];
    at += 2;
    const size_t hex = HexDigitsAfter(letter);
    if (hex > 0 || (letter >= '0' && letter <= '7')) {
      if (hex == 0) --at;
      const std::optional<uint32_t> code =
          ReadDigits(quoted, &at, hex > 0 ? hex : 3, hex > 0 ? 16 : 8);
      if (!code.has_value() || *code > kCodePointMax || (*code >= 0xd800 && *code < 0xe000))
        return absl::InvalidArgumentError(
            Sentence("has the escape \\", std::string(1, letter), " that makes no character"));
      text += CharacterOf(*code);
    } else if (letter == 'N') {
      return absl::InvalidArgumentError("has the escape \\N, which is not supported");
    } else if (const char control = ControlOf(letter); control != '\0') {
      text.push_back(control);
    } else if (letter != '\n') {  // a broken line goes on
      text.push_back('\\');
      text.push_back(letter);
    }
  }
  return text;
}

std::string Quoted(std::string_view text) {
  const bool doubled = text.find('\'') != text.npos && text.find('"') == text.npos;
  const char quote = doubled ? '"' : '\'';
  std::string quoted(1, quote);
  for (size_t at = 0; at < text.size();) {
    const size_t length = std::max<size_t>(CharacterBytes(text.substr(at)), 1);
    const std::string_view character = text.substr(at, length);
    const uint32_t code = CodePointOf(character);
    at += length;
    char escape[16];
    if (code == static_cast<uint8_t>(quote) || code == '\\') {
      quoted.push_back('\\');
      quoted += character;
    } else if (code == '\n' || code == '\r' || code == '\t') {
      quoted += code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t";
    } else if (IsPrintable(code)) {
      quoted += character;
    } else {
      const char* const format = code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x";
      std::snprintf(escape, sizeof escape, format, code);
      quoted += escape;
    }
  }
  quoted.push_back(quote);
  return quoted;
}

}  // namespace serve::llm::jinja
