#include "serve/llm/text/tokenizer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "serve/llm/text/byte_letters.h"
#include "serve/llm/text/space_mark.h"
#include "serve/llm/text/utf8.h"

namespace serve::llm {
namespace {

bool IsToken(int64_t number, const TokenizerParts& parts) {
  return number >= 0 && static_cast<size_t>(number) < parts.tokens.size();
}

absl::Status CheckNumbers(const TokenizerParts& parts) {
  if (parts.tokens.empty() || parts.tokens.size() != parts.kinds.size() ||
      parts.tokens.size() > kTokensMax)
    return absl::InvalidArgumentError("has a tokenizer whose tokens and their kinds differ");
  if (parts.first.has_value() && !IsToken(*parts.first, parts))
    return absl::InvalidArgumentError("has a tokenizer whose first token is none of its tokens");
  if (parts.unknown.has_value() && !IsToken(*parts.unknown, parts))
    return absl::InvalidArgumentError("has a tokenizer whose unknown token is none of its tokens");
  for (const CutToken& cut : parts.cut) {
    if (!IsToken(cut.token, parts))
      return absl::InvalidArgumentError("has a tokenizer whose special tokens are none of its own");
  }
  return absl::OkStatus();
}

// The text that a token stands for.
std::string BytesOfToken(const std::string& token, TokenKind kind, bool byte_level) {
  if (byte_level) return kind == TokenKind::kText ? BytesOfLetters(token) : token;
  const std::optional<uint8_t> byte = kind == TokenKind::kByte ? ByteOfToken(token) : std::nullopt;
  if (byte.has_value()) return std::string(1, static_cast<char>(*byte));
  return absl::StrReplaceAll(token, {{std::string(kSpaceMark), " "}});
}

}  // namespace

absl::StatusOr<Tokenizer> Tokenizer::OfGguf(const Gguf& gguf) {
  absl::StatusOr<TokenizerParts> parts = TokenizerPartsOfGguf(gguf);
  if (!parts.ok()) return parts.status();
  return MakeUntrusted(*std::move(parts));
}

absl::StatusOr<Tokenizer> Tokenizer::OfJsonUntrusted(std::string_view tokenizer_json) {
  absl::StatusOr<TokenizerParts> parts = TokenizerPartsOfJsonUntrusted(tokenizer_json);
  if (!parts.ok()) return parts.status();
  return MakeUntrusted(*std::move(parts));
}

absl::StatusOr<Tokenizer> Tokenizer::MakeUntrusted(TokenizerParts parts) {
  if (const absl::Status fine = CheckNumbers(parts); !fine.ok()) return fine;
  if (parts.unknown.has_value()) parts.pairs.unknown = static_cast<int32_t>(*parts.unknown);
  absl::StatusOr<BytePairs> pairs =
      BytePairs::MakeUntrusted(parts.tokens, parts.merges, parts.pairs);
  if (!pairs.ok()) return pairs.status();
  absl::StatusOr<Splitter> splitter = Splitter::MakeUntrusted(parts.stages);
  if (!splitter.ok()) return splitter.status();
  Tokenizer made(*std::move(pairs), *std::move(splitter));
  made.normal_ = std::move(parts.normal);
  made.marks_ = std::move(parts.marks);
  made.drops_first_space_ = parts.drops_first_space;
  if (parts.first.has_value()) made.first_ = static_cast<int32_t>(*parts.first);
  made.kinds_ = std::move(parts.kinds);
  for (size_t i = 0; i < parts.tokens.size(); ++i)
    made.bytes_.push_back(BytesOfToken(parts.tokens[i], made.kinds_[i], parts.pairs.byte_level));
  for (const CutToken& cut : parts.cut) {
    const absl::Status added = made.AddSpecial(cut, parts.tokens[static_cast<size_t>(cut.token)]);
    if (!added.ok()) return added;
  }
  return made;
}

void Tokenizer::GrowTo(size_t tokens) {
  if (tokens <= bytes_.size()) return;
  bytes_.resize(tokens);
  kinds_.resize(tokens, TokenKind::kText);
}

absl::Status Tokenizer::AddSpecial(const CutToken& cut, const std::string& text) {
  const int32_t token = static_cast<int32_t>(cut.token);
  // Texts are UTF-8: such a token is in none of them whole.
  if (text.empty() || !IsUtf8(text)) return absl::OkStatus();
  absl::StatusOr<std::string> spelled = text;
  if (cut.normalised) spelled = Normalised(text, normal_, true);
  if (!spelled.ok() || spelled->empty() || spelled->size() > kSpecialTokenBytesMax)
    return absl::UnimplementedError(absl::StrCat("has a special token (number ", token,
                                                 ") of no text, or of over ", kSpecialTokenBytesMax,
                                                 " bytes"));
  SpecialTokens& specials = cut.normalised ? specials_of_normal_form_ : specials_;
  specials.Add(*spelled, {token, IsControl(token), cut.strips_left, cut.strips_right});
  return absl::OkStatus();
}

absl::Status Tokenizer::CutOut(const SpecialTokens& specials, std::string_view text,
                               ControlTokens control, Between between,
                               std::vector<int32_t>* tokens) {
  size_t done = 0;
  while (done < text.size()) {
    const std::optional<SpecialMatch> special = specials.Next(text, done, control);
    const size_t end = special.has_value() ? special->begin : text.size();
    if (end > done) {
      const absl::Status fine = between(text.substr(done, end - done), done == 0);
      if (!fine.ok()) return fine;
    }
    if (special.has_value()) tokens->push_back(special->token);
    done = special.has_value() ? special->end : end;
  }
  return absl::OkStatus();
}

absl::Status Tokenizer::AppendText(std::string_view text, bool begins,
                                   std::vector<int32_t>* tokens) const {
  const absl::StatusOr<std::string> marked = Normalised(text, marks_, begins);
  if (!marked.ok()) return marked.status();
  const absl::StatusOr<std::vector<std::string_view>> pieces = splitter_.Split(*marked);
  if (!pieces.ok()) return pieces.status();
  for (const std::string_view piece : *pieces) pairs_.Append(piece, tokens);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int32_t>> Tokenizer::Encode(std::string_view text, ControlTokens control,
                                                       FirstToken first) const {
  if (!IsUtf8(text)) return absl::InvalidArgumentError("the text is not valid UTF-8");
  std::vector<int32_t> tokens;
  if (first == FirstToken::kAdded && first_.has_value()) tokens.push_back(*first_);
  const auto of_normal_form = [&](std::string_view part, bool begins) -> absl::Status {
    const absl::StatusOr<std::string> normal = Normalised(part, normal_, begins);
    if (!normal.ok()) return normal.status();
    const auto append = [&](std::string_view finer, bool first) {
      return AppendText(finer, begins && first, &tokens);
    };
    return CutOut(specials_of_normal_form_, *normal, control, append, &tokens);
  };
  const absl::Status fine = CutOut(specials_, text, control, of_normal_form, &tokens);
  if (!fine.ok()) return fine;
  return tokens;
}

}  // namespace serve::llm
