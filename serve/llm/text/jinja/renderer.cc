#include "serve/llm/text/jinja/renderer.h"

#include <algorithm>

#include "serve/llm/text/jinja/operations.h"
#include "serve/llm/text/jinja/sentence.h"
#include "serve/llm/text/jinja/text_of.h"

namespace serve::llm::jinja {

void Renderer::Append(std::string_view text, std::string* output) {
  if (!rendering_.SpendBytes(text.size())) return;
  output->append(text);
  if (output->size() > kTextBytesMax) rendering_.Fail("the output grows too long");
}

Renderer::Flow Renderer::RunAll(const Statements& statements, Scope* scope, std::string* output) {
  Flow flow = Flow::kOn;
  if (rendering_.Enter()) {
    for (const Statement& statement : statements) {
      if (flow != Flow::kOn || !rendering_.Spend(1)) break;
      rendering_.AtLine(statement.line);
      flow = RunOne(statement, scope, output);
    }
  }
  rendering_.Leave();
  return flow;
}

Renderer::Flow Renderer::RunOne(const Statement& statement, Scope* scope, std::string* output) {
  switch (statement.kind) {
    case StatementKind::kData:
      Append(statement.text, output);
      break;
    case StatementKind::kOutput:
      Append(PlainText(rendering_, evaluator_.Evaluate(*statement.value, *scope)), output);
      break;
    case StatementKind::kIf:
      return If(statement, scope, output);
    case StatementKind::kFor:
      For(statement, scope, output);
      break;
    case StatementKind::kSet:
      Assign(*statement.target, evaluator_.Evaluate(*statement.value, *scope), scope);
      break;
    case StatementKind::kSetBlock:
      SetBlock(statement, scope);
      break;
    case StatementKind::kMacro: {
      const MacroCallable* const macro = rendering_.NewMacro(&statement, scope);
      Set(statement.text, Value(std::make_shared<const Callable>(Callable{.macro = macro})), scope);
      break;
    }
    case StatementKind::kScope:
      RunAll(statement.body, rendering_.NewScope(scope), output);
      break;
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kOn;
}

Renderer::Flow Renderer::If(const Statement& statement, Scope* scope, std::string* output) {
  for (const Branch& branch : statement.branches) {
    const bool taken =
        branch.condition == nullptr || IsTrue(evaluator_.Evaluate(*branch.condition, *scope));
    if (rendering_.failed()) break;
    if (taken) return RunAll(branch.body, scope, output);
  }
  return Flow::kOn;
}

// Whether the loop's condition takes the item.
bool Renderer::Accepts(const Statement& statement, const Value& item, Scope* scope) {
  if (statement.condition == nullptr) return true;
  Scope* const inner = rendering_.NewScope(scope);
  Assign(*statement.target, item, inner);
  return !rendering_.failed() && IsTrue(evaluator_.Evaluate(*statement.condition, *inner));
}

Renderer::Flow Renderer::Iteration(const Statement& statement, Loop* loop, Scope* scope,
                                   std::string* output) {
  Scope* const inner = rendering_.NewScope(scope);
  Set("loop", Value(loop), inner);
  Assign(*statement.target, loop->items[loop->index], inner);
  return RunAll(statement.body, inner, output);
}

// The condition may depend on what the body sets: it is evaluated right before each iteration, as
// Jinja's generators do, unless the body asks for items to come.
void Renderer::For(const Statement& statement, Scope* scope, std::string* output) {
  const Values items = ItemsOf(rendering_, evaluator_.Evaluate(*statement.value, *scope));
  Loop* const loop = rendering_.NewLoop();
  const bool at_once = statement.condition == nullptr || statement.looks_ahead;
  if (at_once)
    for (const Value& item : items)
      if (!rendering_.failed() && Accepts(statement, item, scope)) loop->items.push_back(item);
  const size_t count = at_once ? loop->items.size() : items.size();
  size_t iterations = 0;
  for (size_t index = 0; index < count && rendering_.Spend(1); ++index) {
    if (!at_once && !Accepts(statement, items[index], scope)) continue;
    if (!at_once) loop->items.push_back(items[index]);
    loop->index = iterations++;
    if (Iteration(statement, loop, scope, output) == Flow::kBreak) break;
  }
  if (iterations == 0) RunAll(statement.otherwise, rendering_.NewScope(scope), output);
}

void Renderer::SetBlock(const Statement& statement, Scope* scope) {
  std::string text;
  RunAll(statement.body, rendering_.NewScope(scope), &text);
  Value value = rendering_.MakeText(std::move(text));
  if (statement.value != nullptr) {
    Scope* const inner = rendering_.NewScope(scope);
    inner->Set(kBodyName, std::move(value));
    value = evaluator_.Evaluate(*statement.value, *inner);
  }
  Assign(*statement.target, value, scope);
}

void Renderer::Set(std::string_view name, const Value& value, Scope* scope) {
  if (rendering_.SpendNames(scope->names.size())) scope->Set(name, value);
}

void Renderer::Assign(const Expression& target, const Value& value, Scope* scope) {
  if (rendering_.failed()) return;
  if (target.kind == ExpressionKind::kName) return Set(target.name, value, scope);
  if (target.kind == ExpressionKind::kAttribute) return AssignAttribute(target, value, scope);
  const Values items = ItemsOf(rendering_, value);
  if (items.size() != target.parts.size()) {
    rendering_.Fail(
        Sentence(items.size(), " values are assigned to ", target.parts.size(), " variables"));
    return;
  }
  for (size_t index = 0; index < items.size(); ++index)
    Assign(*target.parts[index], items[index], scope);
}

void Renderer::AssignAttribute(const Expression& target, const Value& value, Scope* scope) {
  Namespace* const names = evaluator_.Evaluate(*target.parts[0], *scope).AsNamespace();
  if (names == nullptr) {
    rendering_.Fail("an attribute is set of what is no namespace");
    return;
  }
  if (!rendering_.SpendNames(names->names.size())) return;
  for (auto& [known, held] : names->names) {
    if (known != target.name) continue;
    held = value;
    return;
  }
  names->names.emplace_back(target.name, value);
}

// Gives the macro's parameters their values.
bool Renderer::Bind(const Statement& macro, const Arguments& arguments, Scope* scope) {
  if (arguments.positional.size() > macro.parameters.size()) {
    rendering_.Fail(Sentence("the macro '", macro.text, "' takes at most ", macro.parameters.size(),
                             " arguments"));
    return false;
  }
  const auto find_named = [&](const std::string& name) {
    return std::find_if(arguments.named.begin(), arguments.named.end(),
                        [&](const auto& named) { return named.first == name; });
  };
  size_t used = 0;
  for (size_t index = 0; index < macro.parameters.size() && !rendering_.failed(); ++index) {
    const auto& [name, fallback] = macro.parameters[index];
    const auto named = find_named(name);
    if (index < arguments.positional.size()) {
      Set(name, arguments.positional[index], scope);
    } else if (named != arguments.named.end()) {
      Set(name, named->second, scope);
      ++used;
    } else {
      Set(name,
          fallback == nullptr ? Value(Undefined{name}) : evaluator_.Evaluate(*fallback, *scope),
          scope);
    }
  }
  if (used != arguments.named.size())
    rendering_.Fail(
        Sentence("the macro '", macro.text, "' has no such parameter, or it is given twice"));
  return !rendering_.failed();
}

Value Renderer::CallMacro(const MacroCallable& macro, const Arguments& arguments) {
  Scope* const scope = rendering_.NewScope(macro.scope);
  if (!Bind(*macro.statement, arguments, scope)) return Value();
  std::string text;
  RunAll(macro.statement->body, scope, &text);
  return rendering_.MakeText(std::move(text));
}

}  // namespace serve::llm::jinja
