#include "serve/llm/text/tokenizer.h"

#include <algorithm>

#include "serve/llm/text/byte_letters.h"

namespace serve::llm {

absl::StatusOr<Tokenizer> Tokenizer::MakeUntrusted(TokenizerParts parts) {
  if (parts.tokens.empty() || parts.tokens.size() != parts.kinds.size() ||
      parts.tokens.size() > INT32_MAX)
    return absl::InvalidArgumentError("has a tokenizer whose tokens and their kinds differ");
  if (parts.first.has_value() &&
      (*parts.first < 0 || static_cast<size_t>(*parts.first) >= parts.tokens.size()))
    return absl::InvalidArgumentError("has a tokenizer whose first token is none of its tokens");
  absl::StatusOr<BytePairs> pairs =
      BytePairs::MakeUntrusted(parts.tokens, parts.merges, parts.whole_pieces);
  if (!pairs.ok()) return pairs.status();
  absl::StatusOr<Splitter> splitter = Splitter::MakeUntrusted(parts.stages);
  if (!splitter.ok()) return splitter.status();
  Tokenizer made(*std::move(pairs), *std::move(splitter));
  made.kinds_ = std::move(parts.kinds);
  if (parts.first.has_value()) made.first_ = static_cast<int32_t>(*parts.first);
  for (size_t i = 0; i < parts.tokens.size(); ++i) {
    const bool text = made.kinds_[i] == TokenKind::kText;
    made.bytes_.push_back(text ? BytesOfLetters(parts.tokens[i]) : parts.tokens[i]);
    if (!text && !parts.tokens[i].empty()) made.AddSpecial(static_cast<int32_t>(i));
  }
  return made;
}

void Tokenizer::AddSpecial(int32_t token) {
  const std::string_view text = BytesOf(token);
  std::vector<int32_t>& same = special_of_letter_[static_cast<uint8_t>(text[0])];
  same.insert(std::find_if(same.begin(), same.end(),
                           [&](int32_t other) { return BytesOf(other).size() < text.size(); }),
              token);
}

std::optional<int32_t> Tokenizer::SpecialAt(std::string_view text, ControlTokens control) const {
  for (const int32_t token : special_of_letter_[static_cast<uint8_t>(text[0])]) {
    if (control == ControlTokens::kAsText && IsControl(token)) continue;
    if (text.substr(0, BytesOf(token).size()) == BytesOf(token)) return token;
  }
  return std::nullopt;
}

absl::Status Tokenizer::AppendText(std::string_view text, std::vector<int32_t>* tokens) const {
  const absl::StatusOr<std::vector<std::string_view>> pieces = splitter_.Split(text);
  if (!pieces.ok()) return pieces.status();
  for (const std::string_view piece : *pieces) pairs_.Append(piece, tokens);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int32_t>> Tokenizer::Encode(std::string_view text,
                                                       ControlTokens control) const {
  std::vector<int32_t> tokens;
  if (first_.has_value()) tokens.push_back(*first_);
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const std::optional<int32_t> special = SpecialAt(text.substr(at), control);
    if (!special.has_value()) {
      ++at;
      continue;
    }
    const absl::Status before = AppendText(text.substr(done, at - done), &tokens);
    if (!before.ok()) return before;
    tokens.push_back(*special);
    at += BytesOf(*special).size();
    done = at;
  }
  if (const absl::Status rest = AppendText(text.substr(done), &tokens); !rest.ok()) return rest;
  return tokens;
}

}  // namespace serve::llm
