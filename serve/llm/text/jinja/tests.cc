// Tests: what `is` asks of a value.
#include "serve/llm/text/jinja/builtin.h"
#include "serve/llm/text/jinja/operations.h"
#include "serve/llm/text/jinja/text_of.h"
#include "serve/llm/text/letters.h"

namespace serve::llm::jinja {
namespace {

bool IsDefined(const Value& value) { return !value.IsUndefined(); }
bool IsUndefined(const Value& value) { return value.IsUndefined(); }
bool IsNone(const Value& value) { return value.IsNone(); }
bool IsBoolean(const Value& value) { return value.AsTruth() != nullptr; }
bool IsTheTrue(const Value& value) { return value.AsTruth() != nullptr && *value.AsTruth(); }
bool IsTheFalse(const Value& value) { return value.AsTruth() != nullptr && !*value.AsTruth(); }
bool IsFloat(const Value& value) { return value.AsFloat() != nullptr; }
bool IsNumber(const Value& value) { return value.IsNumber(); }
bool IsInteger(const Value& value) {
  return value.IsNumber() && value.AsFloat() == nullptr && value.AsTruth() == nullptr;
}
bool IsText(const Value& value) { return value.AsText() != nullptr; }
bool IsMapping(const Value& value) { return value.AsMapping() != nullptr; }
bool IsIterable(const Value& value) {
  return value.IsUndefined() || value.AsText() != nullptr || value.AsMapping() != nullptr ||
         value.AsSequence() != nullptr || value.AsLoop() != nullptr;
}
bool IsNumbered(const Value& value) {
  const Sequence* const sequence = value.AsSequence();
  return value.AsText() != nullptr || value.AsMapping() != nullptr || value.IsUndefined() ||
         (sequence != nullptr && sequence->IsNumbered());
}
// Jinja's undefined value has a call of its own, which raises: Python says that it is callable.
bool IsCallable(const Value& value) { return value.AsCallable() != nullptr || value.IsUndefined(); }

template <bool (*kIs)(const Value&)>
Value Is(Rendering&, const Value& self, const Given&) {
  return Value(kIs(self));
}

template <Operator kWhich>
Value Compares(Rendering& rendering, const Value& self, const Given& given) {
  return Value(Compare(rendering, kWhich, self, given[0]));
}

Value SameAs(Rendering&, const Value& self, const Given& given) {
  return Value(self.type_name() == given[0].type_name() && IsSame(self, given[0]));
}

Value HasRest(Rendering& rendering, const Value& self, const Value& divisor, int64_t rest) {
  const Value left = Calculate(rendering, Operator::kModulo, self, divisor);
  return Value(IsEqual(rendering, left, Value(rest)));
}
Value IsOdd(Rendering& rendering, const Value& self, const Given&) {
  return HasRest(rendering, self, Value(int64_t{2}), 1);
}
Value IsEven(Rendering& rendering, const Value& self, const Given&) {
  return HasRest(rendering, self, Value(int64_t{2}), 0);
}
Value IsDivisible(Rendering& rendering, const Value& self, const Given& given) {
  return HasRest(rendering, self, given[0], 0);
}

Value IsLower(Rendering& rendering, const Value& self, const Given&) {
  return Value(IsLowerCase(PlainText(rendering, self)));
}
Value IsUpper(Rendering& rendering, const Value& self, const Given&) {
  return Value(IsUpperCase(PlainText(rendering, self)));
}

constexpr Builtin kTests[] = {
    {"!=", "other", Compares<Operator::kUnequal>},
    {"boolean", "", Is<IsBoolean>},
    {"callable", "", Is<IsCallable>},
    {"defined", "", Is<IsDefined>},
    {"divisibleby", "num", IsDivisible},
    {"eq", "other", Compares<Operator::kEqual>},
    {"equalto", "other", Compares<Operator::kEqual>},
    {"==", "other", Compares<Operator::kEqual>},
    {"even", "", IsEven},
    {"false", "", Is<IsTheFalse>},
    {"float", "", Is<IsFloat>},
    {"ge", "other", Compares<Operator::kGreaterOrEqual>},
    {">=", "other", Compares<Operator::kGreaterOrEqual>},
    {"gt", "other", Compares<Operator::kGreater>},
    {"greaterthan", "other", Compares<Operator::kGreater>},
    {">", "other", Compares<Operator::kGreater>},
    {"in", "seq", Compares<Operator::kIn>},
    {"integer", "", Is<IsInteger>},
    {"iterable", "", Is<IsIterable>},
    {"le", "other", Compares<Operator::kLessOrEqual>},
    {"<=", "other", Compares<Operator::kLessOrEqual>},
    {"lower", "", IsLower},
    {"lt", "other", Compares<Operator::kLess>},
    {"lessthan", "other", Compares<Operator::kLess>},
    {"<", "other", Compares<Operator::kLess>},
    {"mapping", "", Is<IsMapping>},
    {"ne", "other", Compares<Operator::kUnequal>},
    {"none", "", Is<IsNone>},
    {"number", "", Is<IsNumber>},
    {"odd", "", IsOdd},
    {"sameas", "other", SameAs},
    {"sequence", "", Is<IsNumbered>},
    {"string", "", Is<IsText>},
    {"true", "", Is<IsTheTrue>},
    {"undefined", "", Is<IsUndefined>},
    {"upper", "", IsUpper},
};

}  // namespace

std::span<const Builtin> Tests() { return kTests; }

}  // namespace serve::llm::jinja
