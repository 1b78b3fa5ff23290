#include "serve/llm/text/letters.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "serve/llm/text/utf8.h"

namespace serve::llm {
namespace {

constexpr uint32_t kCapitalSigma = 0x3a3;
constexpr uint32_t kFinalSigma = 0x3c2;
constexpr uint32_t kCapitalDottedI = 0x130;
constexpr std::string_view kSmallDottedI = "i\xcc\x87";

struct SpecialCase {
  uint32_t code_point;
  std::string_view upper;
  std::string_view title;
};
constexpr SpecialCase kSpecialCases[] = {
#include "serve/llm/text/special_casing.inc"
};

const SpecialCase* SpecialCaseOf(uint32_t code) {
  const SpecialCase* const found = std::lower_bound(
      std::begin(kSpecialCases), std::end(kSpecialCases), code,
      [](const SpecialCase& row, uint32_t wanted) { return row.code_point < wanted; });
  return found != std::end(kSpecialCases) && found->code_point == code ? found : nullptr;
}

utf8proc_category_t CategoryOf(uint32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

std::string Upper(uint32_t code) {
  const SpecialCase* const special = SpecialCaseOf(code);
  if (special != nullptr) return std::string(special->upper);
  return CharacterOf(static_cast<uint32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(code))));
}

std::string Title(uint32_t code) {
  const SpecialCase* const special = SpecialCaseOf(code);
  if (special != nullptr) return std::string(special->title);
  return CharacterOf(static_cast<uint32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(code))));
}

bool IsCased(uint32_t code) {
  const utf8proc_category_t category = CategoryOf(code);
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
         category == UTF8PROC_CATEGORY_LT;
}

// What may stand between the letters of a word: marks, modifiers, and some punctuation.
bool IsCaseIgnorable(uint32_t code) {
  constexpr uint32_t kWithinWords[] = {'\'',   '.',    ':',    0xb7,   0x387,  0x55f,
                                       0x5f4,  0x2018, 0x2019, 0x2024, 0x2027, 0xfe13,
                                       0xfe52, 0xfe55, 0xff07, 0xff0e, 0xff1a};
  const utf8proc_category_t category = CategoryOf(code);
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME ||
         category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_LM ||
         category == UTF8PROC_CATEGORY_SK ||
         std::find(std::begin(kWithinWords), std::end(kWithinWords), code) !=
             std::end(kWithinWords);
}

size_t LengthAt(std::string_view text, size_t at) {
  return std::max<size_t>(CharacterBytes(text.substr(at)), 1);
}

bool CasedBefore(std::string_view text, size_t at) {
  while (at > 0) {
    do --at;
    while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80);
    const uint32_t code = CodePointOf(text.substr(at, LengthAt(text, at)));
    if (!IsCaseIgnorable(code)) return IsCased(code);
  }
  return false;
}

bool CasedFrom(std::string_view text, size_t at) {
  while (at < text.size()) {
    const size_t length = LengthAt(text, at);
    const uint32_t code = CodePointOf(text.substr(at, length));
    if (!IsCaseIgnorable(code)) return IsCased(code);
    at += length;
  }
  return false;
}

// The lower case of the character of `length` bytes at `at`.
std::string Lower(std::string_view text, size_t at, size_t length) {
  const uint32_t code = CodePointOf(text.substr(at, length));
  if (code == kCapitalDottedI) return std::string(kSmallDottedI);
  if (code == kCapitalSigma && CasedBefore(text, at) && !CasedFrom(text, at + length))
    return CharacterOf(kFinalSigma);
  return CharacterOf(static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
}

// Whether there are letters with a case, and all are of `wanted`.
bool AllOfCase(std::string_view text, utf8proc_category_t wanted) {
  bool any = false;
  for (size_t at = 0; at < text.size(); at += LengthAt(text, at)) {
    const uint32_t code = CodePointOf(text.substr(at, LengthAt(text, at)));
    if (!IsCased(code)) continue;
    if (CategoryOf(code) != wanted) return false;
    any = true;
  }
  return any;
}

}  // namespace

bool IsPythonSpace(uint32_t code_point) {
  return IsWhiteSpace(code_point) || (code_point >= 0x1c && code_point <= 0x1f);
}

size_t LeadingSpace(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = LengthAt(text, at);
    if (!IsPythonSpace(CodePointOf(text.substr(at, length)))) break;
    at += length;
  }
  return at;
}

size_t TrailingSpace(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    size_t at = end - 1;
    while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80) --at;
    if (!IsPythonSpace(CodePointOf(text.substr(at, end - at)))) break;
    end = at;
  }
  return text.size() - end;
}

bool IsPrintable(uint32_t code_point) {
  if (code_point == ' ') return true;
  switch (CategoryOf(code_point)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
}

std::string LowerCase(std::string_view text) {
  std::string lower;
  for (size_t at = 0; at < text.size(); at += LengthAt(text, at))
    lower += Lower(text, at, LengthAt(text, at));
  return lower;
}

std::string UpperCase(std::string_view text) {
  std::string upper;
  for (size_t at = 0; at < text.size(); at += LengthAt(text, at))
    upper += Upper(CodePointOf(text.substr(at, LengthAt(text, at))));
  return upper;
}

std::string TitleCase(std::string_view text) {
  std::string title;
  bool in_word = false;
  for (size_t at = 0; at < text.size(); at += LengthAt(text, at)) {
    const size_t length = LengthAt(text, at);
    const uint32_t code = CodePointOf(text.substr(at, length));
    title += in_word ? Lower(text, at, length) : Title(code);
    in_word = IsCased(code);
  }
  return title;
}

std::string Capitalised(std::string_view text) {
  std::string capitalised;
  for (size_t at = 0; at < text.size(); at += LengthAt(text, at)) {
    const size_t length = LengthAt(text, at);
    capitalised += at == 0 ? Title(CodePointOf(text.substr(at, length))) : Lower(text, at, length);
  }
  return capitalised;
}

bool IsLowerCase(std::string_view text) { return AllOfCase(text, UTF8PROC_CATEGORY_LL); }
bool IsUpperCase(std::string_view text) { return AllOfCase(text, UTF8PROC_CATEGORY_LU); }

}  // namespace serve::llm
