// Where a parser stands among tokens. A failure sticks, and puts the cursor at the end, so that
// parsers need not look after each step.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "serve/llm/text/jinja/lexer.h"
#include "serve/llm/text/jinja/sentence.h"

namespace serve::llm::jinja {

class TokenCursor {
 public:
  // REQUIRES: the last token is kEnd.
  explicit TokenCursor(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& now() const { return tokens_[at_]; }
  const Token& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool IsAt(TokenKind kind) const { return now().kind == kind; }
  bool IsAt(TokenKind kind, std::string_view text) const {
    return IsAt(kind) && now().text == text;
  }
  bool IsAtName(std::string_view name) const { return IsAt(TokenKind::kName, name); }
  bool IsAtOperator(std::string_view text) const { return IsAt(TokenKind::kOperator, text); }

  // The token that the cursor leaves.
  const Token& Take() {
    const Token& taken = now();
    if (at_ + 1 < tokens_.size()) ++at_;
    return taken;
  }
  bool SkipName(std::string_view name) { return Skip(IsAtName(name)); }
  bool SkipOperator(std::string_view text) { return Skip(IsAtOperator(text)); }
  void Expect(TokenKind kind, std::string_view shown) {
    if (!Skip(IsAt(kind))) Fail("expected ", shown);
  }
  void ExpectOperator(std::string_view text) {
    if (!SkipOperator(text)) Fail("expected '", text, "'");
  }
  void ExpectName(std::string_view name) {
    if (!SkipName(name)) Fail("expected '", name, "'");
  }

  template <typename... Parts>
  void Fail(const Parts&... parts) {
    FailAt(now().line, parts...);
  }
  template <typename... Parts>
  void FailAt(int line, const Parts&... parts) {
    if (failed()) return;
    failure_ =
        absl::InvalidArgumentError(Sentence("is refused: line ", line, ": ", Sentence(parts...)));
    at_ = tokens_.size() - 1;
  }
  bool failed() const { return !failure_.ok(); }
  const absl::Status& failure() const { return failure_; }

 private:
  bool Skip(bool is_there) {
    if (is_there) Take();
    return is_there;
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  absl::Status failure_;
};

}  // namespace serve::llm::jinja
