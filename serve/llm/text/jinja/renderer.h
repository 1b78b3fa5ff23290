// Runs the statements of a template, and gathers its output.
//
// As in Jinja, variables that a loop's body, a macro or a set block sets are forgotten at the end.
// Templates carry values out of a loop in a namespace.
//
// Thread safety: none.
#pragma once

#include <string>

#include "serve/llm/text/jinja/evaluator.h"
#include "serve/llm/text/jinja/rendering.h"
#include "serve/llm/text/jinja/syntax.h"

namespace serve::llm::jinja {

class Renderer : public MacroCaller {
 public:
  explicit Renderer(Rendering* rendering) : rendering_(*rendering), evaluator_(rendering, this) {}

  // REQUIRES: `statements` and `scope` outlive the rendering. Where the rendering fails, the output
  // has no meaning.
  void Run(const Statements& statements, Scope* scope, std::string* output) {
    RunAll(statements, scope, output);
  }

 private:
  enum class Flow { kOn, kBreak, kContinue };

  Flow RunAll(const Statements& statements, Scope* scope, std::string* output);
  Flow RunOne(const Statement& statement, Scope* scope, std::string* output);
  Flow If(const Statement& statement, Scope* scope, std::string* output);
  void For(const Statement& statement, Scope* scope, std::string* output);
  bool Accepts(const Statement& statement, const Value& item, Scope* scope);
  Flow Iteration(const Statement& statement, Loop* loop, Scope* scope, std::string* output);
  void SetBlock(const Statement& statement, Scope* scope);
  void Assign(const Expression& target, const Value& value, Scope* scope);
  void AssignAttribute(const Expression& target, const Value& value, Scope* scope);
  void Set(std::string_view name, const Value& value, Scope* scope);
  void Append(std::string_view text, std::string* output);
  bool Bind(const Statement& macro, const Arguments& arguments, Scope* scope);
  Value CallMacro(const MacroCallable& macro, const Arguments& arguments) override;

  Rendering& rendering_;
  Evaluator evaluator_;
};

}  // namespace serve::llm::jinja
