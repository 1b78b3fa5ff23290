// Cuts PTX text into tokens. The text is untrusted: any byte sequence gives tokens or a kError
// token. Thread safety: none. The text outlives the lexer and its tokens.
#pragma once

#include <cstdint>
#include <string_view>

namespace softgpu::ptx {

struct Token {
  enum class Kind : uint8_t {
    kEnd,
    kError,    // text is the offending piece
    kWord,     // identifiers, directives (".reg"), mnemonics ("ld.global.f32"), "%tid.x"
    kInteger,  // bits
    kFloat32,  // 0f3F800000: bits
    kFloat64,  // 0d3FF0000000000000 or 1.5: bits
    kString,   // without its quotes
    kPunct,    // one character
  };
  Kind kind = Kind::kEnd;
  std::string_view text;
  uint64_t bits = 0;
  int line = 1;

  bool Is(char c) const { return kind == Kind::kPunct && text[0] == c; }
  bool Is(std::string_view word) const { return kind == Kind::kWord && text == word; }
  // A variable or a function of a module begins here, whatever its linkage.
  bool BeginsDeclaration() const;
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { current_ = Scan(); }

  const Token& Peek() const { return current_; }
  Token Next();
  // From here on, Peek() is the end of the text.
  void Stop();

 private:
  void SkipBlanks();
  Token Scan();
  Token ScanNumber();
  Token ScanString();
  Token ScanHexFloat(int digits, Token::Kind kind);
  Token Make(Token::Kind kind, size_t begin, uint64_t bits = 0) const;

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  Token current_;
};

}  // namespace softgpu::ptx
