#include "serve/llm/text/jinja/lexer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "serve/llm/text/jinja/sentence.h"
#include "serve/llm/text/jinja/text_literal.h"
#include "serve/llm/text/letters.h"
#include "serve/llm/text/utf8.h"

namespace serve::llm::jinja {
namespace {

bool IsDigit(char letter) { return letter >= '0' && letter <= '9'; }
bool IsNameStart(char letter) {
  return letter == '_' || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
}

// Jinja reads all ends of lines as "\n", and drops the last one.
std::string WithPlainLines(std::string_view text) {
  std::string plain;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool pair = text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n';
    if (!pair) plain.push_back(text[at] == '\r' ? '\n' : text[at]);
  }
  if (plain.ends_with('\n')) plain.pop_back();
  return plain;
}

class Lexer {
 public:
  explicit Lexer(std::string text) : text_(std::move(text)) {}

  absl::StatusOr<std::vector<Token>> All();

 private:
  bool At(std::string_view what) const { return Rest().starts_with(what); }
  std::string_view Rest() const { return std::string_view(text_).substr(at_); }
  bool Fail(std::string_view sentence);
  void Add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }
  void Skip(size_t count);
  void SkipSpace();

  bool Data();
  bool Comment();
  bool Raw(size_t after_begin);
  bool Tag(bool block);
  bool TagEnd(bool block);
  bool TagToken();
  bool Number();
  bool TextLiteral();
  bool Operator();
  std::string Stripped(std::string_view data, char sign, bool strips_lines) const;
  size_t RawBegin() const;

  std::string text_;
  size_t at_ = 0;
  int line_ = 1;
  std::string open_;  // brackets that are to be closed, as their closing ones
  std::vector<Token> tokens_;
  absl::Status failure_;
};

bool Lexer::Fail(std::string_view sentence) {
  failure_ = absl::InvalidArgumentError(Sentence("is refused: line ", line_, ": ", sentence));
  return false;
}

// Each step forward comes through here, so that lines are counted in one place.
void Lexer::Skip(size_t count) {
  line_ += static_cast<int>(std::count(text_.begin() + static_cast<ptrdiff_t>(at_),
                                       text_.begin() + static_cast<ptrdiff_t>(at_ + count), '\n'));
  at_ += count;
}

void Lexer::SkipSpace() { Skip(LeadingSpace(Rest())); }

// Text before a tag whose sign is `sign`, without what the sign or the start of the line takes.
std::string Lexer::Stripped(std::string_view data, char sign, bool strips_lines) const {
  if (sign == '-') return std::string(data.substr(0, data.size() - TrailingSpace(data)));
  if (sign == '+' || !strips_lines) return std::string(data);
  const size_t newline = data.rfind('\n');
  const size_t start = newline == data.npos ? 0 : newline + 1;
  const bool starts_line = start > 0 || at_ == 0 || text_[at_ - 1] == '\n';
  const std::string_view indent = data.substr(start);
  const bool blank = starts_line && LeadingSpace(indent) == indent.size();
  return std::string(blank ? data.substr(0, start) : data);
}

// How many bytes {% raw %} takes here; 0: something else stands here.
size_t Lexer::RawBegin() const {
  std::string_view rest = Rest().substr(2);
  if (rest.starts_with('-') || rest.starts_with('+')) rest.remove_prefix(1);
  rest.remove_prefix(LeadingSpace(rest));
  if (!rest.starts_with("raw")) return 0;
  rest.remove_prefix(3);
  rest.remove_prefix(LeadingSpace(rest));
  const bool strips = rest.starts_with("-%}");
  if (!strips && !rest.starts_with("%}")) return 0;
  rest.remove_prefix(strips ? 3 : 2);
  if (strips) rest.remove_prefix(LeadingSpace(rest));
  return Rest().size() - rest.size();
}

// Text up to the next tag, and that tag.
bool Lexer::Data() {
  size_t begin = at_;
  do {
    begin = text_.find('{', begin);
    if (begin == text_.npos) {
      Add(TokenKind::kData, text_.substr(at_));
      at_ = text_.size();
      return true;
    }
    ++begin;
  } while (begin == text_.size() ||
           std::string_view("{%#").find(text_[begin]) == std::string_view::npos);
  const char mark = text_[begin--];
  const char sign = begin + 2 < text_.size() ? text_[begin + 2] : '\0';
  const std::string_view data = Rest().substr(0, begin - at_);
  std::string stripped = Stripped(data, sign, mark != '{');
  if (!stripped.empty()) Add(TokenKind::kData, std::move(stripped));
  Skip(data.size());
  if (const size_t raw = mark == '%' ? RawBegin() : 0; raw > 0) return Raw(raw);
  Skip(sign == '-' || sign == '+' ? 3 : 2);
  return mark == '#' ? Comment() : Tag(mark == '%');
}

// Signs at both ends take white space, as those of other tags.
bool Lexer::Comment() {
  const size_t end = text_.find("#}", at_);
  if (end == text_.npos) return Fail("a comment has no end");
  const char sign = end > at_ ? text_[end - 1] : '\0';
  Skip(end + 2 - at_);
  if (sign == '-') SkipSpace();
  if (sign != '-' && sign != '+' && At("\n")) Skip(1);
  return true;
}

// What stands between {% raw %} and {% endraw %} is text.
bool Lexer::Raw(size_t after_begin) {
  Skip(after_begin);
  for (size_t begin = text_.find("{%", at_); begin != text_.npos;
       begin = text_.find("{%", begin + 1)) {
    std::string_view rest = std::string_view(text_).substr(begin + 2);
    const char sign = rest.empty() ? '\0' : rest[0];
    if (sign == '-' || sign == '+') rest.remove_prefix(1);
    rest.remove_prefix(LeadingSpace(rest));
    if (!rest.starts_with("endraw")) continue;
    rest.remove_prefix(6);
    rest.remove_prefix(LeadingSpace(rest));
    const bool marked = rest.starts_with("-%}") || rest.starts_with("+%}");
    if (!marked && !rest.starts_with("%}")) continue;
    const std::string_view data = Rest().substr(0, begin - at_);
    Add(TokenKind::kData, Stripped(data, sign, true));
    const char end_sign = rest[0];
    Skip(text_.size() - rest.size() + (marked ? 3 : 2) - at_);
    if (end_sign == '-') SkipSpace();
    if (!marked && At("\n")) Skip(1);
    return true;
  }
  return Fail("{% raw %} has no {% endraw %}");
}

// The tokens of one tag. Its text literals may spell the ends of tags.
bool Lexer::Tag(bool block) {
  Add(block ? TokenKind::kBlockBegin : TokenKind::kVariableBegin, "");
  open_.clear();
  while (true) {
    SkipSpace();
    if (open_.empty() && TagEnd(block)) return true;
    if (at_ == text_.size()) return Fail(block ? "a tag {% has no %}" : "a tag {{ has no }}");
    if (!TagToken()) return false;
  }
}

// Within brackets an end of a tag is none: {{ {"a": {}} }}.
bool Lexer::TagEnd(bool block) {
  const std::string_view end = block ? "%}" : "}}";
  const bool strips = At("-") && Rest().substr(1).starts_with(end);
  const bool keeps = block && At("+") && Rest().substr(1).starts_with(end);
  if (!strips && !keeps && !At(end)) return false;
  Add(block ? TokenKind::kBlockEnd : TokenKind::kVariableEnd, "");
  Skip(strips || keeps ? 3 : 2);
  if (strips) SkipSpace();
  if (block && !strips && !keeps && At("\n")) Skip(1);
  return true;
}

// One token that is no end of the tag.
bool Lexer::TagToken() {
  const char first = text_[at_];
  if (IsDigit(first)) return Number();
  if (first == '\'' || first == '"') return TextLiteral();
  if (!IsNameStart(first)) return Operator();
  size_t end = at_;
  while (end < text_.size() && (IsNameStart(text_[end]) || IsDigit(text_[end]))) ++end;
  if (end < text_.size() && static_cast<uint8_t>(text_[end]) >= 0x80)
    return Fail("a name has a letter beyond ASCII, which is not supported");
  Add(TokenKind::kName, text_.substr(at_, end - at_));
  Skip(end - at_);
  return true;
}

// Digits with single '_' between them; returns where they end.
size_t EndOfDigits(std::string_view text, size_t at) {
  while (at < text.size() &&
         (IsDigit(text[at]) || (text[at] == '_' && at + 1 < text.size() && IsDigit(text[at + 1]))))
    ++at;
  return at;
}

// A float has digits on both sides of its dot, so that x.0.y has none.
bool Lexer::Number() {
  const std::string_view rest = Rest();
  size_t end = EndOfDigits(rest, 0);
  const bool after_dot = at_ > 0 && text_[at_ - 1] == '.';  // x.0.1 has no float
  bool is_float = false;
  if (!after_dot && end + 1 < rest.size() && rest[end] == '.' && IsDigit(rest[end + 1])) {
    end = EndOfDigits(rest, end + 1);
    is_float = true;
  }
  if (!after_dot && end < rest.size() && (rest[end] == 'e' || rest[end] == 'E')) {
    const bool sign = end + 1 < rest.size() && (rest[end + 1] == '+' || rest[end + 1] == '-');
    const size_t digits = end + (sign ? 2 : 1);
    if (digits < rest.size() && IsDigit(rest[digits])) {
      end = EndOfDigits(rest, digits);
      is_float = true;
    }
  }
  if (!is_float && rest[0] == '0' && end < rest.size() && IsNameStart(rest[end]))
    return Fail("numbers are decimal; another base is not supported");
  std::string digits(rest.substr(0, end));
  std::erase(digits, '_');
  if (!is_float && digits.size() > 1 && digits.find_first_not_of('0') != digits.npos &&
      digits[0] == '0')
    return Fail("a number begins with 0");
  Add(is_float ? TokenKind::kFloat : TokenKind::kInteger, std::move(digits));
  Skip(end);
  return true;
}

// A backslash keeps the quote behind it from being the end.
bool Lexer::TextLiteral() {
  const char quote = text_[at_];
  size_t end = at_ + 1;
  while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
  if (end >= text_.size()) return Fail("a text has no closing quote");
  absl::StatusOr<std::string> text = UnescapedUntrusted(Rest().substr(1, end - at_ - 1));
  if (!text.ok()) return Fail(Sentence("a text ", text.status().message()));
  Add(TokenKind::kText, *std::move(text));
  Skip(end + 1 - at_);
  return true;
}

// The longer operators first. Brackets must close in order, since they decide where a tag ends.
bool Lexer::Operator() {
  constexpr std::string_view kTwo[] = {"//", "**", "==", "!=", ">=", "<="};
  constexpr std::string_view kOne = "+-/*%~[](){}><=.:|,;";
  size_t length = 0;
  for (const std::string_view two : kTwo)
    if (At(two)) length = 2;
  if (length == 0 && kOne.find(text_[at_]) != kOne.npos) length = 1;
  if (length == 0) return Fail("a character that has no meaning in a tag");
  const std::string_view text = Rest().substr(0, length);
  constexpr std::string_view kOpening = "([{";
  constexpr std::string_view kClosing = ")]}";
  if (const size_t opening = kOpening.find(text); opening != kOpening.npos)
    open_.push_back(kClosing[opening]);
  if (kClosing.find(text) != kClosing.npos) {
    if (!open_.ends_with(text)) return Fail(Sentence("'", text, "' closes nothing"));
    open_.pop_back();
  }
  Add(TokenKind::kOperator, std::string(text));
  Skip(length);
  return true;
}

absl::StatusOr<std::vector<Token>> Lexer::All() {
  while (at_ < text_.size())
    if (!Data()) return failure_;
  Add(TokenKind::kEnd, "");
  return std::move(tokens_);
}

}  // namespace

absl::StatusOr<std::vector<Token>> TokensOfUntrusted(std::string_view text) {
  if (text.size() > kTemplateBytesMax)
    return absl::InvalidArgumentError(
        Sentence("has ", text.size(), " bytes; at most ", kTemplateBytesMax, " are read"));
  if (!IsUtf8(text)) return absl::InvalidArgumentError("is no UTF-8");
  return Lexer(WithPlainLines(text)).All();
}

}  // namespace serve::llm::jinja
