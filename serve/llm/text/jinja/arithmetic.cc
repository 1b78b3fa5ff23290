#include <cmath>

#include "serve/llm/text/jinja/operations.h"
#include "serve/llm/text/jinja/sentence.h"
#include "serve/llm/text/jinja/text_of.h"

namespace serve::llm::jinja {
namespace {

Value Overflow(Rendering& rendering) {
  return rendering.Fail("a whole number is beyond 64 bits, which is not supported");
}

Value Undone(Rendering& rendering, const Value& left, const Value& right) {
  for (const Value* const side : {&left, &right})
    if (side->IsUndefined())
      return rendering.Fail(Sentence("'", side->AsUndefined()->name, "' is undefined"));
  return rendering.Fail(Sentence("an operator has no meaning for the types ", left.type_name(),
                                 " and ", right.type_name()));
}

double FloatOf(const Value& value) {
  int64_t number = 0;
  if (const double* const given = value.AsFloat()) return *given;
  value.AsInteger(&number);
  return static_cast<double>(number);
}

Value Power(Rendering& rendering, int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return rendering.Fail("0 has no negative power");
    return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  if (base == 0 || base == 1) return Value(exponent == 0 ? int64_t{1} : base);
  if (base == -1) return Value(exponent % 2 == 0 ? int64_t{1} : int64_t{-1});
  int64_t power = 1;
  for (int64_t count = 0; count < exponent; ++count)  // overflows before 64
    if (__builtin_mul_overflow(power, base, &power)) return Overflow(rendering);
  return Value(power);
}

// Rounds down, as Python does, and C++ does not.
Value FloorDivide(Rendering& rendering, int64_t left, int64_t right, bool remainder) {
  if (right == 0) return rendering.Fail("a division by 0");
  if (right == -1) {
    if (remainder) return Value(int64_t{0});
    int64_t negative = 0;
    return __builtin_sub_overflow(int64_t{0}, left, &negative) ? Overflow(rendering)
                                                               : Value(negative);
  }
  int64_t quotient = left / right;
  int64_t rest = left % right;
  if (rest != 0 && (rest < 0) != (right < 0)) {
    --quotient;
    rest += right;
  }
  return Value(remainder ? rest : quotient);
}

Value OfIntegers(Rendering& rendering, Operator which, int64_t left, int64_t right) {
  int64_t result = 0;
  bool overflows = false;
  switch (which) {
    case Operator::kAdd:
      overflows = __builtin_add_overflow(left, right, &result);
      break;
    case Operator::kSubtract:
      overflows = __builtin_sub_overflow(left, right, &result);
      break;
    case Operator::kMultiply:
      overflows = __builtin_mul_overflow(left, right, &result);
      break;
    case Operator::kDivide:
      if (right == 0) return rendering.Fail("a division by 0");
      return Value(static_cast<double>(static_cast<long double>(left) / right));
    case Operator::kFloorDivide:
      return FloorDivide(rendering, left, right, false);
    case Operator::kModulo:
      return FloorDivide(rendering, left, right, true);
    default:
      return Power(rendering, left, right);
  }
  return overflows ? Overflow(rendering) : Value(result);
}

Value OfFloats(Rendering& rendering, Operator which, double left, double right) {
  switch (which) {
    case Operator::kAdd:
      return Value(left + right);
    case Operator::kSubtract:
      return Value(left - right);
    case Operator::kMultiply:
      return Value(left * right);
    default:
      break;
  }
  if (which == Operator::kPower) {
    const double power = std::pow(left, right);
    // Where Python raises an error, or makes a complex number.
    if (!std::isfinite(power) && std::isfinite(left) && std::isfinite(right))
      return rendering.Fail("a power is out of range");
    return Value(power);
  }
  if (right == 0) return rendering.Fail("a division by 0");
  if (which == Operator::kDivide) return Value(left / right);
  double rest = std::fmod(left, right);
  double quotient = (left - rest) / right;
  if (rest != 0 && (rest < 0) != (right < 0)) {
    rest += right;
    quotient -= 1;
  } else if (rest == 0) {
    rest = std::copysign(0.0, right);
  }
  if (which == Operator::kModulo) return Value(rest);
  if (quotient == 0) return Value(std::copysign(0.0, left / right));
  const double floor = std::floor(quotient);
  return Value(quotient - floor > 0.5 ? floor + 1 : floor);
}

Value Joined(Rendering& rendering, const Sequence& left, const Sequence& right) {
  if (!rendering.Spend(left.items.size() + right.items.size())) return Value();
  Values items = left.items;
  items.insert(items.end(), right.items.begin(), right.items.end());
  return rendering.Make(left.form, std::move(items));
}

// A text or a list, so many times.
Value Repeated(Rendering& rendering, const Value& value, int64_t times) {
  const std::string* const text = value.AsText();
  const size_t size = text != nullptr ? text->size() : value.AsSequence()->items.size();
  const size_t count = times < 0 ? 0 : static_cast<size_t>(times);
  if (size > 0 && count > kTextBytesMax / size) return rendering.Fail("a value repeated too often");
  const size_t total = size * count;
  if (!(text != nullptr ? rendering.SpendBytes(total) : rendering.Spend(total))) return Value();
  std::string longer;
  Values items;
  for (size_t each = 0; each < (size == 0 ? 0 : count); ++each) {
    if (text != nullptr)
      longer += *text;
    else
      items.insert(items.end(), value.AsSequence()->items.begin(), value.AsSequence()->items.end());
  }
  return text != nullptr ? rendering.MakeText(std::move(longer))
                         : rendering.Make(value.AsSequence()->form, std::move(items));
}

bool IsRepeatable(const Value& value) {
  return value.AsText() != nullptr ||
         (value.AsSequence() != nullptr && value.AsSequence()->form <= SequenceForm::kTuple);
}

}  // namespace

Value Calculate(Rendering& rendering, Operator which, const Value& left, const Value& right) {
  int64_t a = 0, b = 0;
  const bool whole_left = left.AsInteger(&a);
  const bool whole_right = right.AsInteger(&b);
  if (whole_left && whole_right) return OfIntegers(rendering, which, a, b);
  if (left.IsNumber() && right.IsNumber())
    return OfFloats(rendering, which, FloatOf(left), FloatOf(right));
  if (which == Operator::kAdd && left.AsText() != nullptr && right.AsText() != nullptr) {
    if (!rendering.SpendBytes(left.AsText()->size() + right.AsText()->size())) return Value();
    return rendering.MakeText(*left.AsText() + *right.AsText());
  }
  const Sequence* const list = left.AsSequence();
  if (which == Operator::kAdd && list != nullptr && right.AsSequence() != nullptr &&
      list->form <= SequenceForm::kTuple && list->form == right.AsSequence()->form)
    return Joined(rendering, *list, *right.AsSequence());
  if (which == Operator::kMultiply && whole_right && IsRepeatable(left))
    return Repeated(rendering, left, b);
  if (which == Operator::kMultiply && whole_left && IsRepeatable(right))
    return Repeated(rendering, right, a);
  if (which == Operator::kModulo && left.AsText() != nullptr)
    return rendering.Fail("formatting a text by '%' is not supported");
  return Undone(rendering, left, right);
}

Value Negative(Rendering& rendering, const Value& value) {
  int64_t number = 0;
  if (const double* const given = value.AsFloat()) return Value(-*given);
  if (value.AsInteger(&number)) return OfIntegers(rendering, Operator::kSubtract, 0, number);
  return Undone(rendering, value, value);
}

}  // namespace serve::llm::jinja
