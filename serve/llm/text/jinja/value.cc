#include "serve/llm/text/jinja/value.h"

#include <algorithm>

namespace serve::llm::jinja {
namespace {

constexpr std::string_view kSequenceNames[] = {"list", "tuple", "range", "dict view", "generator"};

}  // namespace

bool Value::AsInteger(int64_t* number) const {
  if (const bool* const truth = AsTruth()) {
    *number = *truth ? 1 : 0;
    return true;
  }
  const int64_t* const held = std::get_if<int64_t>(&held_);
  if (held != nullptr) *number = *held;
  return held != nullptr;
}

bool Value::IsNumber() const {
  int64_t number;
  return AsFloat() != nullptr || AsInteger(&number);
}

int Value::depth() const {
  if (const Sequence* const sequence = AsSequence()) return sequence->depth;
  if (const Mapping* const mapping = AsMapping()) return mapping->depth;
  if (const Callable* const callable = AsCallable()) return callable->self.depth() + 1;
  return 0;
}

std::string_view Value::type_name() const {
  if (const Sequence* const sequence = AsSequence())
    return kSequenceNames[static_cast<size_t>(sequence->form)];
  constexpr std::string_view kNames[] = {"undefined", "None",      "bool", "int",
                                         "float",     "str",       "list", "dict",
                                         "function",  "namespace", "loop"};
  return kNames[held_.index()];
}

SequencePointer MakeSequence(SequenceForm form, Values items) {
  Sequence sequence{.form = form, .items = std::move(items)};
  for (const Value& item : sequence.items)
    sequence.depth = std::max(sequence.depth, item.depth() + 1);
  return std::make_shared<const Sequence>(std::move(sequence));
}

MappingPointer MakeMapping(std::vector<std::pair<Value, Value>> entries) {
  Mapping mapping{.entries = std::move(entries)};
  for (const auto& [key, value] : mapping.entries)
    mapping.depth = std::max({mapping.depth, key.depth() + 1, value.depth() + 1});
  return std::make_shared<const Mapping>(std::move(mapping));
}

}  // namespace serve::llm::jinja
