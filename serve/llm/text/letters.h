// Letters as Python's texts know them: white space, upper and lower case by Unicode's full mappings
// (one letter may become several), what repr() prints.
//
// Thread safety: functions without state. REQUIRES: texts are valid UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace serve::llm {

// Unicode's white space, and the separators U+001C to U+001F.
bool IsPythonSpace(uint32_t code_point);
// Bytes of white space at the beginning and at the end.
size_t LeadingSpace(std::string_view text);
size_t TrailingSpace(std::string_view text);

// Whether repr() prints the character as it is.
bool IsPrintable(uint32_t code_point);

// A capital sigma at the end of a word becomes the small letter that stands there.
std::string LowerCase(std::string_view text);
std::string UpperCase(std::string_view text);
// The first letter of each run of letters in title case, the others in lower case.
std::string TitleCase(std::string_view text);
// The first character in title case, the others in lower case.
std::string Capitalised(std::string_view text);

// Whether there are letters with a case, and all are of this one.
bool IsLowerCase(std::string_view text);
bool IsUpperCase(std::string_view text);

}  // namespace serve::llm
