#include "serve/llm/text/jinja/text_parts.h"

#include <algorithm>

#include "serve/llm/text/letters.h"
#include "serve/llm/text/text_search.h"
#include "serve/llm/text/utf8.h"

namespace serve::llm::jinja {
namespace {

size_t FirstCharacter(std::string_view text) { return std::max<size_t>(CharacterBytes(text), 1); }

size_t LastCharacter(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80) --at;
  return text.size() - at;
}

bool EndsLine(uint32_t code) {
  return (code >= 0x0a && code <= 0x0d) || (code >= 0x1c && code <= 0x1e) || code == 0x85 ||
         code == 0x2028 || code == 0x2029;
}

}  // namespace

std::string_view Trimmed(std::string_view text, std::optional<std::string_view> characters,
                         Ends ends) {
  if (!characters.has_value()) {
    if (ends != Ends::kRight) text.remove_prefix(LeadingSpace(text));
    if (ends != Ends::kLeft) text.remove_suffix(TrailingSpace(text));
    return text;
  }
  const auto is_taken = [&](std::string_view character) {
    return characters->find(character) != characters->npos;
  };
  while (ends != Ends::kRight && !text.empty() && is_taken(text.substr(0, FirstCharacter(text))))
    text.remove_prefix(FirstCharacter(text));
  while (ends != Ends::kLeft && !text.empty() &&
         is_taken(text.substr(text.size() - LastCharacter(text))))
    text.remove_suffix(LastCharacter(text));
  return text;
}

std::string Replaced(std::string_view text, std::string_view from, std::string_view to,
                     int64_t count) {
  std::string replaced;
  size_t at = 0;
  for (; count != 0; --count) {
    const size_t found = FindText(text, from, at);
    if (found == text.npos) break;
    replaced += text.substr(at, found - at);
    replaced += to;
    at = found + from.size();
    if (!from.empty()) continue;
    // An empty text is before each character and behind the last.
    if (at == text.size()) break;
    const size_t length = FirstCharacter(text.substr(at));
    replaced += text.substr(at, length);
    at += length;
  }
  replaced += text.substr(at);
  return replaced;
}

std::vector<std::string_view> SplitAtSpace(std::string_view text, int64_t cuts_max) {
  std::vector<std::string_view> parts;
  text.remove_prefix(LeadingSpace(text));
  while (!text.empty() && cuts_max-- != 0) {
    size_t end = 0;
    while (end < text.size() &&
           LeadingSpace(text.substr(end, FirstCharacter(text.substr(end)))) == 0)
      end += FirstCharacter(text.substr(end));
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
    text.remove_prefix(LeadingSpace(text));
  }
  if (!text.empty()) parts.push_back(text);
  return parts;
}

std::vector<std::string_view> SplitAt(std::string_view text, std::string_view separator,
                                      int64_t cuts_max) {
  std::vector<std::string_view> parts;
  for (; cuts_max != 0; --cuts_max) {
    const size_t found = FindText(text, separator);
    if (found == text.npos) break;
    parts.push_back(text.substr(0, found));
    text.remove_prefix(found + separator.size());
  }
  parts.push_back(text);
  return parts;
}

std::vector<std::string_view> LinesOf(std::string_view text, bool with_ends) {
  std::vector<std::string_view> lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    size_t length = FirstCharacter(text.substr(at));
    if (!EndsLine(CodePointOf(text.substr(at, length)))) {
      at += length;
      continue;
    }
    if (text.substr(at).starts_with("\r\n")) length = 2;
    lines.push_back(text.substr(begin, at - begin + (with_ends ? length : 0)));
    at += length;
    begin = at;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

}  // namespace serve::llm::jinja
