#include "serve/llm/text/special_tokens.h"

#include <algorithm>
#include <functional>

#include "serve/llm/text/utf8.h"

namespace serve::llm {
namespace {

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

// Where the white space before `end` begins, not before `from`.
size_t WhiteSpaceBefore(std::string_view text, size_t from, size_t end) {
  size_t begin = end;
  for (size_t at = from; at < end;) {
    const size_t bytes = CharacterLength(static_cast<uint8_t>(text[at]));
    const bool white = IsWhiteSpace(CodePointOf(text.substr(at, bytes)));
    if (!white) begin = end;
    if (white && begin == end) begin = at;
    at += bytes;
  }
  return begin;
}

size_t WhiteSpaceAfter(std::string_view text, size_t begin) {
  size_t end = begin;
  while (end < text.size()) {
    const size_t bytes = CharacterLength(static_cast<uint8_t>(text[end]));
    if (!IsWhiteSpace(CodePointOf(text.substr(end, bytes)))) break;
    end += bytes;
  }
  return end;
}

}  // namespace

void SpecialTokens::Add(std::string_view text, const SpecialToken& special) {
  if (!tokens_.emplace(text, special).second) return;
  std::vector<size_t>& lengths = lengths_of_first_[static_cast<uint8_t>(text[0])];
  const auto place =
      std::lower_bound(lengths.begin(), lengths.end(), text.size(), std::greater<size_t>());
  if (place == lengths.end() || *place != text.size()) lengths.insert(place, text.size());
}

std::optional<SpecialMatch> SpecialTokens::At(std::string_view text, size_t at,
                                              ControlTokens control) const {
  for (const size_t length : lengths_of_first_[static_cast<uint8_t>(text[at])]) {
    if (length > text.size() - at) continue;
    const auto found = tokens_.find(View(text.substr(at, length)));
    if (found == tokens_.end()) continue;
    const SpecialToken& special = found->second;
    if (control == ControlTokens::kAsText && special.control) continue;
    return SpecialMatch{at, at + length, special.token};
  }
  return std::nullopt;
}

std::optional<SpecialMatch> SpecialTokens::Next(std::string_view text, size_t from,
                                                ControlTokens control) const {
  for (size_t at = from; at < text.size(); ++at) {
    std::optional<SpecialMatch> match = At(text, at, control);
    if (!match.has_value()) continue;
    const SpecialToken& special = tokens_.find(View(text.substr(at, match->end - at)))->second;
    if (special.strips_left) match->begin = WhiteSpaceBefore(text, from, match->begin);
    if (special.strips_right) match->end = WhiteSpaceAfter(text, match->end);
    return match;
  }
  return std::nullopt;
}

}  // namespace serve::llm
