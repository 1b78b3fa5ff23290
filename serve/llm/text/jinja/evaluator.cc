#include "serve/llm/text/jinja/evaluator.h"

#include "serve/llm/text/jinja/operations.h"
#include "serve/llm/text/jinja/sentence.h"
#include "serve/llm/text/jinja/text_of.h"

namespace serve::llm::jinja {

Value Evaluator::Evaluate(const Expression& expression, const Scope& scope) {
  Value value;
  if (rendering_.Enter() && rendering_.Spend(1)) {
    rendering_.AtLine(expression.line);
    value = Dispatch(expression, scope);
  }
  rendering_.Leave();
  return rendering_.failed() ? Value() : value;
}

Value Evaluator::Dispatch(const Expression& expression, const Scope& scope) {
  switch (expression.kind) {
    case ExpressionKind::kConstant:
      return expression.constant;
    case ExpressionKind::kName:
      return Name(expression, scope);
    case ExpressionKind::kList:
      return rendering_.MakeList(Parts(expression, 0, scope));
    case ExpressionKind::kTuple:
      return rendering_.Make(SequenceForm::kTuple, Parts(expression, 0, scope));
    case ExpressionKind::kDictionary:
      return Dictionary(expression, scope);
    case ExpressionKind::kAttribute:
      return AttributeOf(rendering_, Part(expression, 0, scope), expression.name);
    case ExpressionKind::kSubscript: {
      const Value value = Part(expression, 0, scope);
      return ItemOf(rendering_, value, Part(expression, 1, scope));
    }
    case ExpressionKind::kSlice:
      return Slice(expression, scope);
    case ExpressionKind::kCall:
      return Call(expression, scope);
    case ExpressionKind::kFilter:
    case ExpressionKind::kTest: {
      const Value input = Part(expression, 0, scope);
      return CallBuiltin(rendering_, *expression.builtin, input, ArgumentsOf(expression, scope));
    }
    case ExpressionKind::kNot:
      return Value(!IsTrue(Part(expression, 0, scope)));
    case ExpressionKind::kNegative:
      return Negative(rendering_, Part(expression, 0, scope));
    case ExpressionKind::kPositive:
      return Positive(Part(expression, 0, scope));
    case ExpressionKind::kArithmetic: {
      const Value left = Part(expression, 0, scope);
      return Calculate(rendering_, expression.operators[0], left, Part(expression, 1, scope));
    }
    case ExpressionKind::kComparison:
      return Comparison(expression, scope);
    case ExpressionKind::kAnd: {
      Value left = Part(expression, 0, scope);
      return IsTrue(left) ? Part(expression, 1, scope) : left;
    }
    case ExpressionKind::kOr: {
      Value left = Part(expression, 0, scope);
      return IsTrue(left) ? left : Part(expression, 1, scope);
    }
    case ExpressionKind::kConcatenate:
      return Concatenation(expression, scope);
    case ExpressionKind::kConditional:
      return Conditional(expression, scope);
  }
  return Value();
}

Values Evaluator::Parts(const Expression& expression, size_t first, const Scope& scope) {
  Values parts;
  for (size_t index = first; index < expression.parts.size() && !rendering_.failed(); ++index)
    parts.push_back(Part(expression, index, scope));
  return parts;
}

Arguments Evaluator::ArgumentsOf(const Expression& call, const Scope& scope) {
  Arguments arguments{.positional = Parts(call, 1, scope), .named = {}};
  for (const auto& [name, value] : call.named)
    arguments.named.emplace_back(name, Evaluate(*value, scope));
  return arguments;
}

Value Evaluator::Name(const Expression& expression, const Scope& scope) {
  size_t looked = 0;
  const Value* const found = scope.Find(expression.name, &looked);
  if (!rendering_.SpendNames(looked)) return Value();
  if (found != nullptr) return *found;
  const Builtin* const function = FindBuiltin(Functions(), expression.name);
  if (function == nullptr) return Value(Undefined{expression.name});
  return Value(std::make_shared<const Callable>(Callable{.builtin = function}));
}

Value Evaluator::Dictionary(const Expression& expression, const Scope& scope) {
  std::vector<std::pair<Value, Value>> entries;
  for (size_t index = 0; index < expression.parts.size() && !rendering_.failed(); index += 2) {
    const Value key = Part(expression, index, scope);
    PutKey(rendering_, key, Part(expression, index + 1, scope), &entries);
  }
  return rendering_.MakeDictionary(std::move(entries));
}

Value Evaluator::Slice(const Expression& expression, const Scope& scope) {
  const Value value = Part(expression, 0, scope);
  Values bounds;
  for (size_t index = 1; index < 4; ++index)
    bounds.push_back(expression.parts[index] == nullptr ? Value(None())
                                                        : Part(expression, index, scope));
  return rendering_.failed() ? Value() : SliceOf(rendering_, value, bounds);
}

Value Evaluator::Call(const Expression& expression, const Scope& scope) {
  const Value called = Part(expression, 0, scope);
  const Arguments arguments = ArgumentsOf(expression, scope);
  if (rendering_.failed()) return Value();
  const Callable* const callable = called.AsCallable();
  if (callable == nullptr) {
    const Expression& name = *expression.parts[0];
    return rendering_.Fail(Sentence("'", name.name, "' is called, and is ", called.type_name()));
  }
  if (callable->macro != nullptr) return macros_.CallMacro(*callable->macro, arguments);
  return CallBuiltin(rendering_, *callable->builtin, callable->self, arguments);
}

Value Evaluator::Positive(const Value& value) {
  int64_t number = 0;
  if (value.AsFloat() != nullptr) return value;
  if (value.AsInteger(&number)) return Value(number);
  return Negative(rendering_, value);  // which says why it is no number
}

Value Evaluator::Comparison(const Expression& expression, const Scope& scope) {
  Value left = Part(expression, 0, scope);
  for (size_t index = 0; index < expression.operators.size(); ++index) {
    Value right = Part(expression, index + 1, scope);
    if (rendering_.failed()) return Value();
    if (!Compare(rendering_, expression.operators[index], left, right)) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Value Evaluator::Concatenation(const Expression& expression, const Scope& scope) {
  std::string all;
  for (const Value& part : Parts(expression, 0, scope)) {
    all += PlainText(rendering_, part);
    if (all.size() > kTextBytesMax) return rendering_.Fail("a text grows too long");
  }
  return rendering_.MakeText(std::move(all));
}

Value Evaluator::Conditional(const Expression& expression, const Scope& scope) {
  if (IsTrue(Part(expression, 0, scope))) return Part(expression, 1, scope);
  return expression.parts[2] == nullptr ? Value() : Part(expression, 2, scope);
}

}  // namespace serve::llm::jinja
