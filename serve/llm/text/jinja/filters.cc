#include "serve/llm/text/jinja/filters.h"

#include <algorithm>

#include "serve/llm/text/jinja/operations.h"
#include "serve/llm/text/jinja/sentence.h"

namespace serve::llm::jinja {
namespace {

Value Default(Rendering&, const Value& self, const Given& given) {
  const bool replaced = self.IsUndefined() || (given.has(1) && IsTrue(given[1]) && !IsTrue(self));
  if (!replaced) return self;
  return given.has(0) ? given[0] : Value("");
}

Value First(Rendering& rendering, const Value& self, const Given&) {
  const Values items = ItemsOf(rendering, self);
  return items.empty() ? Value() : items.front();
}

Value Last(Rendering& rendering, const Value& self, const Given&) {
  const Sequence* const sequence = self.AsSequence();
  if (sequence != nullptr && sequence->form == SequenceForm::kGenerator)
    return rendering.Fail("a generator has no last item");
  const Values items = ItemsOf(rendering, self);
  return items.empty() ? Value() : items.back();
}

Value Length(Rendering& rendering, const Value& self, const Given&) {
  const std::optional<int64_t> length = LengthOf(rendering, self);
  if (!length.has_value())
    return rendering.Fail(Sentence("a value of type ", self.type_name(), " has no length"));
  return Value(*length);
}

Value List(Rendering& rendering, const Value& self, const Given&) {
  return rendering.MakeList(ItemsOf(rendering, self));
}

Value Items(Rendering& rendering, const Value& self, const Given&) {
  if (!self.IsUndefined() && self.AsMapping() == nullptr)
    return rendering.Fail(Sentence("a value of type ", self.type_name(), " is no mapping"));
  Values items;
  if (const Mapping* const mapping = self.AsMapping())
    for (const auto& [key, value] : mapping->entries)
      if (!rendering.failed()) items.push_back(rendering.Make(SequenceForm::kTuple, {key, value}));
  return rendering.Make(SequenceForm::kGenerator, std::move(items));
}

Value Reverse(Rendering& rendering, const Value& self, const Given&) {
  if (self.AsText() != nullptr)
    return SliceOf(rendering, self, {Value(None()), Value(None()), Value(int64_t{-1})});
  Values items = ItemsOf(rendering, self);
  std::reverse(items.begin(), items.end());
  return rendering.Make(SequenceForm::kGenerator, std::move(items));
}

Value Sum(Rendering& rendering, const Value& self, const Given& given) {
  Value sum = given.has(1) ? given[1] : Value(int64_t{0});
  if (sum.AsText() != nullptr)
    return rendering.Fail("texts have no sum; 'join' puts them together");
  for (const Value& item : ItemsOf(rendering, self)) {
    if (rendering.failed()) break;
    sum = Calculate(rendering, Operator::kAdd, sum,
                    given.has(0) ? AttributePath(rendering, item, given[0]) : item);
  }
  return sum;
}

// Texts are not escaped anywhere, so each is safe.
Value Safe(Rendering& rendering, const Value& self, const Given& given) {
  return StringFilter(rendering, self, given);
}

constexpr Builtin kFilters[] = {
    {"abs", "", AbsFilter},
    {"capitalize", "", CapitalizeFilter},
    {"count", "", Length},
    {"d", "default_value? boolean?", Default},
    {"default", "default_value? boolean?", Default},
    {"dictsort", "case_sensitive? by? reverse?", DictSortFilter},
    {"first", "", First},
    {"float", "default?", FloatFilter},
    {"indent", "width? first? blank?", IndentFilter},
    {"int", "default? base?", IntFilter},
    {"items", "", Items},
    {"join", "d? attribute?", JoinFilter},
    {"last", "", Last},
    {"length", "", Length},
    {"list", "", List},
    {"lower", "", LowerFilter},
    {"map", "*", MapFilter},
    {"max", "case_sensitive? attribute?", MaxFilter},
    {"min", "case_sensitive? attribute?", MinFilter},
    {"reject", "*", RejectFilter},
    {"rejectattr", "*", RejectAttributeFilter},
    {"replace", "old new count?", ReplaceFilter},
    {"reverse", "", Reverse},
    {"round", "precision? method?", RoundFilter},
    {"safe", "", Safe},
    {"select", "*", SelectFilter},
    {"selectattr", "*", SelectAttributeFilter},
    {"sort", "reverse? case_sensitive? attribute?", SortFilter},
    {"string", "", StringFilter},
    {"sum", "attribute? start?", Sum},
    {"title", "", TitleFilter},
    {"tojson", "ensure_ascii? indent? separators? sort_keys?", JsonFilter},
    {"trim", "chars?", TrimFilter},
    {"unique", "case_sensitive? attribute?", UniqueFilter},
    {"upper", "", UpperFilter},
};

}  // namespace

std::span<const Builtin> Filters() { return kFilters; }

}  // namespace serve::llm::jinja
