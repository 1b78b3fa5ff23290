#include "softgpu/ptx/lexer.h"

#include <cstdlib>
#include <cstring>
#include <string>

namespace softgpu::ptx {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsWordStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}

bool IsWord(char c) { return IsWordStart(c) || IsDigit(c); }

// The value of a digit in any base up to 16, or 99.
int DigitValue(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

}  // namespace

bool Token::BeginsDeclaration() const {
  for (const std::string_view begin : {".visible", ".extern", ".weak", ".common", ".func", ".entry",
                                       ".global", ".const", ".shared", ".local"}) {
    if (Is(begin)) return true;
  }
  return false;
}

Token Lexer::Next() {
  Token token = current_;
  if (token.kind != Token::Kind::kEnd) current_ = Scan();
  return token;
}

void Lexer::Stop() {
  at_ = text_.size();
  current_ = Token{Token::Kind::kEnd, {}, 0, line_};
}

void Lexer::SkipBlanks() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n') {
      ++line_;
      ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++at_;
    } else if (text_.substr(at_, 2) == "//") {
      const size_t end = text_.find('\n', at_);
      at_ = end == std::string_view::npos ? text_.size() : end;
    } else if (text_.substr(at_, 2) == "/*") {
      const size_t found = text_.find("*/", at_ + 2);
      const size_t end = found == std::string_view::npos ? text_.size() : found + 2;
      for (; at_ < end; ++at_) line_ += text_[at_] == '\n';
    } else {
      return;
    }
  }
}

Token Lexer::Make(Token::Kind kind, size_t begin, uint64_t bits) const {
  return Token{kind, text_.substr(begin, at_ - begin), bits, line_};
}

Token Lexer::Scan() {
  SkipBlanks();
  if (at_ >= text_.size() || text_[at_] == '\0') return Token{Token::Kind::kEnd, {}, 0, line_};
  const size_t begin = at_;
  const char c = text_[at_];
  if (IsDigit(c)) return ScanNumber();
  if (c == '"') return ScanString();
  const bool dotted = c == '.' && at_ + 1 < text_.size() && IsWordStart(text_[at_ + 1]);
  if (!IsWordStart(c) && !dotted) {
    ++at_;
    const bool known = std::strchr("{}()[]<>,;:=+-|!@&*/~?^.", c) != nullptr;
    return Make(known ? Token::Kind::kPunct : Token::Kind::kError, begin);
  }
  bool has_dot = false;
  while (at_ < text_.size()) {
    const char w = text_[at_];
    if (w == '.' && at_ + 1 < text_.size() && IsWord(text_[at_ + 1])) {
      has_dot = true;
      ++at_;
    } else if (has_dot && text_.substr(at_, 2) == "::" && at_ + 2 < text_.size() &&
               IsWord(text_[at_ + 2])) {
      at_ += 2;
    } else if (IsWord(w)) {
      ++at_;
    } else {
      break;
    }
  }
  return Make(Token::Kind::kWord, begin);
}

Token Lexer::ScanHexFloat(int digits, Token::Kind kind) {
  const size_t begin = at_;
  at_ += 2;
  uint64_t bits = 0;
  int seen = 0;
  for (; seen < digits && at_ < text_.size() && DigitValue(text_[at_]) < 16; ++seen, ++at_) {
    bits = bits << 4 | DigitValue(text_[at_]);
  }
  return Make(seen == digits ? kind : Token::Kind::kError, begin, bits);
}

Token Lexer::ScanNumber() {
  const size_t begin = at_;
  const char second = at_ + 1 < text_.size() ? text_[at_ + 1] : ' ';
  const bool zero = text_[at_] == '0';
  if (zero && (second == 'f' || second == 'F')) return ScanHexFloat(8, Token::Kind::kFloat32);
  if (zero && (second == 'd' || second == 'D')) return ScanHexFloat(16, Token::Kind::kFloat64);
  int base = 10;
  if (zero && (second == 'x' || second == 'X')) {
    base = 16;
    at_ += 2;
  } else if (zero && (second == 'b' || second == 'B')) {
    base = 2;
    at_ += 2;
  } else if (zero && IsDigit(second)) {
    base = 8;
  }
  uint64_t bits = 0;
  while (at_ < text_.size() && DigitValue(text_[at_]) < base) {
    bits = bits * base + DigitValue(text_[at_++]);
  }
  const char next = at_ < text_.size() ? text_[at_] : ' ';
  if (base == 10 && (next == '.' || next == 'e' || next == 'E')) {
    const std::string copy(text_.substr(begin, 64));
    char* end = nullptr;
    const double value = std::strtod(copy.c_str(), &end);
    at_ = begin + (end - copy.c_str());
    std::memcpy(&bits, &value, sizeof bits);
    return Make(Token::Kind::kFloat64, begin, bits);
  }
  if (next == 'U') ++at_;
  const bool bad = at_ < text_.size() && IsWord(text_[at_]);
  return Make(bad ? Token::Kind::kError : Token::Kind::kInteger, begin, bits);
}

Token Lexer::ScanString() {
  const size_t begin = ++at_;
  while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') ++at_;
  Token token = Make(Token::Kind::kString, begin);
  if (at_ < text_.size() && text_[at_] == '"') {
    ++at_;
  } else {
    token.kind = Token::Kind::kError;
  }
  return token;
}

}  // namespace softgpu::ptx
