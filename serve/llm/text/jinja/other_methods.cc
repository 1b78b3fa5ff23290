// Methods of mappings, sequences and loops.
#include "serve/llm/text/jinja/builtin.h"
#include "serve/llm/text/jinja/operations.h"

namespace serve::llm::jinja {
namespace {

Value Get(Rendering& rendering, const Value& self, const Given& given) {
  const Value* const found = FindKey(rendering, *self.AsMapping(), given[0]);
  if (found != nullptr) return *found;
  return given.has(1) ? given[1] : Value(None());
}

Value Keys(Rendering& rendering, const Value& self, const Given&) {
  return rendering.Make(SequenceForm::kView, ItemsOf(rendering, self));
}

Value ValuesOf(Rendering& rendering, const Value& self, const Given&) {
  Values values;
  if (!rendering.Spend(self.AsMapping()->entries.size())) return Value();
  for (const auto& [key, value] : self.AsMapping()->entries) values.push_back(value);
  return rendering.Make(SequenceForm::kView, std::move(values));
}

Value ItemsOfDict(Rendering& rendering, const Value& self, const Given&) {
  Values items;
  for (const auto& [key, value] : self.AsMapping()->entries) {
    if (rendering.failed()) return Value();
    items.push_back(rendering.Make(SequenceForm::kTuple, {key, value}));
  }
  return rendering.Make(SequenceForm::kView, std::move(items));
}

Value Copy(Rendering&, const Value& self, const Given&) { return self; }

Value CountInList(Rendering& rendering, const Value& self, const Given& given) {
  int64_t count = 0;
  for (const Value& item : self.AsSequence()->items) count += IsEqual(rendering, item, given[0]);
  return Value(count);
}

Value IndexInList(Rendering& rendering, const Value& self, const Given& given) {
  int64_t index = 0;
  for (const Value& item : self.AsSequence()->items) {
    if (IsEqual(rendering, item, given[0])) return Value(index);
    ++index;
  }
  return rendering.Fail("a list does not hold the value that it is searched for");
}

Value Cycle(Rendering& rendering, const Value& self, const Given& given) {
  const Values& values = given.all->positional;
  if (values.empty()) return rendering.Fail("'cycle' needs values");
  return values[self.AsLoop()->index % values.size()];
}

// Whether the values are others than in the iteration before.
Value HasChanged(Rendering& rendering, const Value& self, const Given& given) {
  Loop& loop = *self.AsLoop();
  const Values& values = given.all->positional;
  bool same = loop.called && loop.last_changed.size() == values.size();
  for (size_t index = 0; same && index < values.size(); ++index)
    same = IsEqual(rendering, values[index], loop.last_changed[index]);
  loop.called = true;
  loop.last_changed = values;
  return Value(!same);
}

constexpr Builtin kMappingMethods[] = {
    {"copy", "", Copy}, {"get", "key default?", Get}, {"items", "", ItemsOfDict},
    {"keys", "", Keys}, {"values", "", ValuesOf},
};
constexpr Builtin kSequenceMethods[] = {{"count", "value", CountInList},
                                        {"index", "value", IndexInList}};
constexpr Builtin kLoopMethods[] = {{"changed", "*", HasChanged}, {"cycle", "*", Cycle}};

}  // namespace

std::span<const Builtin> MappingMethods() { return kMappingMethods; }
std::span<const Builtin> SequenceMethods() { return kSequenceMethods; }
std::span<const Builtin> LoopMethods() { return kLoopMethods; }

}  // namespace serve::llm::jinja
