// Filters that compare items. Texts compare without their case unless the caller says otherwise.
#include <algorithm>

#include "serve/llm/text/jinja/filters.h"
#include "serve/llm/text/jinja/operations.h"
#include "serve/llm/text/jinja/sentence.h"
#include "serve/llm/text/jinja/text_parts.h"
#include "serve/llm/text/letters.h"

namespace serve::llm::jinja {
namespace {

struct Keyed {
  Value key;
  Value item;
};

Value KeyOf(Rendering& rendering, const Value& value, bool with_case) {
  if (with_case || value.AsText() == nullptr) return value;
  if (!rendering.SpendBytes(value.AsText()->size())) return Value();
  return Value(LowerCase(*value.AsText()));
}

// `attribute` is null, or names what of an item is compared.
std::vector<Keyed> KeyedItems(Rendering& rendering, const Value& self, const Value* attribute,
                              bool with_case) {
  std::vector<Keyed> keyed;
  for (const Value& item : ItemsOf(rendering, self)) {
    if (rendering.failed()) break;
    const Value compared = attribute == nullptr ? item : AttributePath(rendering, item, *attribute);
    keyed.push_back({KeyOf(rendering, compared, with_case), item});
  }
  return keyed;
}

// By several attributes, "a,b", a list of keys is compared.
std::vector<Keyed> KeyedByAttributes(Rendering& rendering, const Value& self,
                                     const Value& attributes, bool with_case) {
  const std::string* const text = attributes.AsText();
  if (text == nullptr || text->find(',') == text->npos)
    return KeyedItems(rendering, self, &attributes, with_case);
  std::vector<Keyed> keyed;
  for (const Value& item : ItemsOf(rendering, self)) {
    Values keys;
    for (const std::string_view each : SplitAt(*text, ",", -1)) {
      if (rendering.failed()) return keyed;
      keys.push_back(KeyOf(rendering, AttributePath(rendering, item, Value(each)), with_case));
    }
    keyed.push_back({rendering.MakeList(std::move(keys)), item});
  }
  return keyed;
}

// A failure makes no item less than another from then on, with which the sort ends well.
void Sort(Rendering& rendering, bool backwards, std::vector<Keyed>* keyed) {
  std::stable_sort(keyed->begin(), keyed->end(), [&](const Keyed& left, const Keyed& right) {
    return backwards ? IsLess(rendering, right.key, left.key)
                     : IsLess(rendering, left.key, right.key);
  });
}

Values ItemsIn(const std::vector<Keyed>& keyed) {
  Values items;
  for (const Keyed& each : keyed) items.push_back(each.item);
  return items;
}

bool IsGiven(const Given& given, size_t index) { return given.has(index) && IsTrue(given[index]); }

const Value* AttributeAt(const Given& given, size_t index) {
  return given.has(index) && !given[index].IsNone() ? &given.values[index] : nullptr;
}

// The first item that no other is less than; or greater, with `greatest`.
Value Extreme(Rendering& rendering, const Value& self, const Given& given, bool greatest) {
  const std::vector<Keyed> keyed =
      KeyedItems(rendering, self, AttributeAt(given, 1), IsGiven(given, 0));
  const Keyed* best = nullptr;
  for (const Keyed& each : keyed) {
    const bool better = best == nullptr || (greatest ? IsLess(rendering, best->key, each.key)
                                                     : IsLess(rendering, each.key, best->key));
    if (better) best = &each;
  }
  return best == nullptr ? Value() : best->item;
}

}  // namespace

Value SortFilter(Rendering& rendering, const Value& self, const Given& given) {
  const Value* const attribute = AttributeAt(given, 2);
  const bool with_case = IsGiven(given, 1);
  std::vector<Keyed> keyed = attribute == nullptr
                                 ? KeyedItems(rendering, self, nullptr, with_case)
                                 : KeyedByAttributes(rendering, self, *attribute, with_case);
  Sort(rendering, IsGiven(given, 0), &keyed);
  return rendering.MakeList(ItemsIn(keyed));
}

Value DictSortFilter(Rendering& rendering, const Value& self, const Given& given) {
  const Mapping* const mapping = self.AsMapping();
  const bool by_value = given.has(1) && IsEqual(rendering, given[1], Value("value"));
  if (mapping == nullptr ||
      (given.has(1) && !by_value && !IsEqual(rendering, given[1], Value("key"))))
    return rendering.Fail("'dictsort' needs a mapping, and sorts by 'key' or by 'value'");
  std::vector<Keyed> keyed;
  for (const auto& [key, value] : mapping->entries) {
    if (rendering.failed()) return Value();
    keyed.push_back({KeyOf(rendering, by_value ? value : key, IsGiven(given, 0)),
                     rendering.Make(SequenceForm::kTuple, {key, value})});
  }
  Sort(rendering, IsGiven(given, 2), &keyed);
  return rendering.MakeList(ItemsIn(keyed));
}

Value MinFilter(Rendering& rendering, const Value& self, const Given& given) {
  return Extreme(rendering, self, given, false);
}
Value MaxFilter(Rendering& rendering, const Value& self, const Given& given) {
  return Extreme(rendering, self, given, true);
}

Value UniqueFilter(Rendering& rendering, const Value& self, const Given& given) {
  std::vector<Keyed> kept;
  for (Keyed& each : KeyedItems(rendering, self, AttributeAt(given, 1), IsGiven(given, 0))) {
    if (rendering.failed()) return Value();
    if (!IsHashable(each.key))
      return rendering.Fail(Sentence("'unique' takes no value of type ", each.key.type_name()));
    const bool known = std::any_of(kept.begin(), kept.end(), [&](const Keyed& other) {
      return IsEqual(rendering, each.key, other.key);
    });
    if (!known) kept.push_back(std::move(each));
  }
  return rendering.Make(SequenceForm::kGenerator, ItemsIn(kept));
}

}  // namespace serve::llm::jinja
