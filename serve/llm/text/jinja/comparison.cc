#include <algorithm>

#include "serve/llm/text/jinja/operations.h"
#include "serve/llm/text/jinja/sentence.h"
#include "serve/llm/text/text_search.h"

namespace serve::llm::jinja {
namespace {

// Exact for all of both types: long double holds 64 bits of digits.
long double NumberOf(const Value& value) {
  int64_t number = 0;
  if (const double* const given = value.AsFloat()) return *given;
  value.AsInteger(&number);
  return static_cast<long double>(number);
}

bool SequencesEqual(Rendering& rendering, const Sequence& left, const Sequence& right) {
  if (left.form != right.form || left.items.size() != right.items.size()) return false;
  if (left.form == SequenceForm::kGenerator) return &left == &right;
  for (size_t index = 0; index < left.items.size(); ++index)
    if (!IsEqual(rendering, left.items[index], right.items[index])) return false;
  return true;
}

bool MappingsEqual(Rendering& rendering, const Mapping& left, const Mapping& right) {
  if (left.entries.size() != right.entries.size()) return false;
  for (const auto& [key, value] : left.entries) {
    const Value* const other = FindKey(rendering, right, key);
    if (other == nullptr || !IsEqual(rendering, value, *other)) return false;
  }
  return true;
}

bool IsSequenceLess(Rendering& rendering, const Sequence& left, const Sequence& right) {
  const size_t common = std::min(left.items.size(), right.items.size());
  for (size_t index = 0; index < common && !rendering.failed(); ++index)
    if (!IsEqual(rendering, left.items[index], right.items[index]))
      return IsLess(rendering, left.items[index], right.items[index]);
  return left.items.size() < right.items.size();
}

}  // namespace

bool IsSame(const Value& left, const Value& right) {
  if (left.IsNone() || right.IsNone()) return left.IsNone() && right.IsNone();
  const bool* const truth = left.AsTruth();
  const bool* const other = right.AsTruth();
  if (truth != nullptr || other != nullptr)
    return truth != nullptr && other != nullptr && *truth == *other;
  return left.AsSequence() == right.AsSequence() && left.AsMapping() == right.AsMapping() &&
         left.AsNamespace() == right.AsNamespace() && left.AsLoop() == right.AsLoop() &&
         left.AsCallable() == right.AsCallable() && left.AsText() == right.AsText() &&
         left.IsUndefined() == right.IsUndefined() && left.IsNumber() == right.IsNumber();
}

bool IsEqual(Rendering& rendering, const Value& left, const Value& right) {
  if (!rendering.Spend(1)) return false;
  if (left.IsUndefined() || right.IsUndefined()) return left.IsUndefined() && right.IsUndefined();
  if (left.IsNumber() && right.IsNumber()) return NumberOf(left) == NumberOf(right);
  const std::string* const text = left.AsText();
  if (text != nullptr)
    return right.AsText() != nullptr && rendering.SpendBytes(text->size()) &&
           *text == *right.AsText();
  const Sequence* const sequence = left.AsSequence();
  if (sequence != nullptr && right.AsSequence() != nullptr)
    return SequencesEqual(rendering, *sequence, *right.AsSequence());
  const Mapping* const mapping = left.AsMapping();
  if (mapping != nullptr && right.AsMapping() != nullptr)
    return MappingsEqual(rendering, *mapping, *right.AsMapping());
  return left.type_name() == right.type_name() && IsSame(left, right);
}

bool IsLess(Rendering& rendering, const Value& left, const Value& right) {
  if (!rendering.Spend(1)) return false;
  if (left.IsNumber() && right.IsNumber()) return NumberOf(left) < NumberOf(right);
  if (left.AsText() != nullptr && right.AsText() != nullptr) {
    const size_t common = std::min(left.AsText()->size(), right.AsText()->size());
    return rendering.SpendBytes(common) && *left.AsText() < *right.AsText();
  }
  const Sequence* const sequence = left.AsSequence();
  const Sequence* const other = right.AsSequence();
  if (sequence != nullptr && other != nullptr && sequence->form == other->form &&
      sequence->form <= SequenceForm::kTuple)
    return IsSequenceLess(rendering, *sequence, *other);
  rendering.Fail(Sentence("values of the types ", left.type_name(), " and ", right.type_name(),
                          " have no order"));
  return false;
}

bool IsIn(Rendering& rendering, const Value& item, const Value& container) {
  if (const std::string* const text = container.AsText()) {
    const std::string* const part = item.AsText();
    if (part == nullptr) {
      rendering.Fail(Sentence("a text holds texts, no value of type ", item.type_name()));
      return false;
    }
    return rendering.SpendBytes(text->size() + part->size()) &&
           FindText(*text, *part) != std::string_view::npos;
  }
  if (const Mapping* const mapping = container.AsMapping())
    return FindKey(rendering, *mapping, item) != nullptr;
  for (const Value& each : ItemsOf(rendering, container))
    if (IsEqual(rendering, each, item)) return true;
  return false;
}

bool Compare(Rendering& rendering, Operator which, const Value& left, const Value& right) {
  switch (which) {
    case Operator::kEqual:
      return IsEqual(rendering, left, right);
    case Operator::kUnequal:
      return !IsEqual(rendering, left, right);
    case Operator::kLess:
      return IsLess(rendering, left, right);
    case Operator::kGreater:
      return IsLess(rendering, right, left);
    // Either way also for what has no order of its own: not a number.
    case Operator::kLessOrEqual:
      return IsLess(rendering, left, right) || IsEqual(rendering, left, right);
    case Operator::kGreaterOrEqual:
      return IsLess(rendering, right, left) || IsEqual(rendering, left, right);
    case Operator::kIn:
      return IsIn(rendering, left, right);
    default:
      return !IsIn(rendering, left, right);
  }
}

}  // namespace serve::llm::jinja
