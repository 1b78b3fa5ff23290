// Values of expressions.
//
// Thread safety: none.
#pragma once

#include "serve/llm/text/jinja/rendering.h"
#include "serve/llm/text/jinja/syntax.h"

namespace serve::llm::jinja {

class MacroCaller {
 public:
  virtual ~MacroCaller() = default;
  virtual Value CallMacro(const MacroCallable& macro, const Arguments& arguments) = 0;
};

class Evaluator {
 public:
  Evaluator(Rendering* rendering, MacroCaller* macros) : rendering_(*rendering), macros_(*macros) {}

  // Undefined where the rendering fails.
  Value Evaluate(const Expression& expression, const Scope& scope);

 private:
  Value Dispatch(const Expression& expression, const Scope& scope);
  Value Part(const Expression& expression, size_t index, const Scope& scope) {
    return Evaluate(*expression.parts[index], scope);
  }
  Values Parts(const Expression& expression, size_t first, const Scope& scope);
  Arguments ArgumentsOf(const Expression& call, const Scope& scope);

  Value Name(const Expression& expression, const Scope& scope);
  Value Dictionary(const Expression& expression, const Scope& scope);
  Value Slice(const Expression& expression, const Scope& scope);
  Value Call(const Expression& expression, const Scope& scope);
  Value Positive(const Value& value);
  Value Comparison(const Expression& expression, const Scope& scope);
  Value Concatenation(const Expression& expression, const Scope& scope);
  Value Conditional(const Expression& expression, const Scope& scope);

  Rendering& rendering_;
  MacroCaller& macros_;
};

}  // namespace serve::llm::jinja
