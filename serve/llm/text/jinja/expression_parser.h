// Expressions of a template. What binds how tightly is Jinja's own order:
// https://jinja.palletsprojects.com/en/stable/templates/#expressions
//
// Filters, tests and methods that are not supported are refused here by their names, whether or not
// a rendering would reach them.
//
// Thread safety: none.
#pragma once

#include <utility>

#include "serve/llm/text/jinja/syntax.h"
#include "serve/llm/text/jinja/token_cursor.h"

namespace serve::llm::jinja {

// An expression without parts yet.
ExpressionPointer MakeExpression(ExpressionKind kind, int line);

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenCursor* cursor) : cursor_(*cursor) {}

  // None returns null, also after a failure.
  ExpressionPointer Whole();  // with `x if y else z`
  // Several with commas between them are a tuple.
  ExpressionPointer WholeOrTuple(bool with_if);
  // `x`, `x, y`, `(x, y), z`, and with `attributes` also `x.y`.
  ExpressionPointer Target(bool attributes);
  // The filters behind `input`.
  ExpressionPointer Filters(ExpressionPointer input);

  // Whether an expression since the last call asked the loop around it for what is still to come.
  bool ExchangeLooksAhead(bool looks) { return std::exchange(looks_ahead_, looks); }

  // Counts how deep the parser stands, and refuses what is too deep. Leave() after each Enter().
  bool Enter();
  void Leave() { --depth_; }

 private:
  void Adopt(Expression* parent, ExpressionPointer part);
  ExpressionPointer Join(ExpressionKind kind, ExpressionPointer left, ExpressionPointer right);

  ExpressionPointer Or();
  ExpressionPointer And();
  ExpressionPointer Not();
  ExpressionPointer Comparison();
  ExpressionPointer Sum();
  ExpressionPointer Concatenation();
  ExpressionPointer Product();
  ExpressionPointer Power();
  ExpressionPointer Unary(bool with_filters);
  ExpressionPointer Primary();
  ExpressionPointer NameOrConstant();
  ExpressionPointer List();
  ExpressionPointer Dictionary();
  ExpressionPointer Postfix(ExpressionPointer inner);
  ExpressionPointer FiltersAndTests(ExpressionPointer inner);
  ExpressionPointer Subscript(ExpressionPointer inner);
  ExpressionPointer Attribute(ExpressionPointer inner);
  ExpressionPointer Call(ExpressionPointer inner);
  ExpressionPointer Test(ExpressionPointer inner);
  void CallArguments(Expression* call);

  TokenCursor& cursor_;
  int depth_ = 0;
  bool looks_ahead_ = false;
};

}  // namespace serve::llm::jinja
