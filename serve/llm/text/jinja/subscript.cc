#include <algorithm>

#include "serve/llm/text/jinja/operations.h"
#include "serve/llm/text/jinja/sentence.h"
#include "serve/llm/text/utf8.h"

namespace serve::llm::jinja {
namespace {

// Numbers from the end are negative. Nothing: out of range.
std::optional<size_t> IndexOf(int64_t number, size_t size) {
  if (number < 0) number += static_cast<int64_t>(size);
  if (number < 0 || number >= static_cast<int64_t>(size)) return std::nullopt;
  return static_cast<size_t>(number);
}

Value CharacterAt(Rendering& rendering, std::string_view text, int64_t number) {
  if (!rendering.SpendBytes(text.size())) return Value();
  const std::vector<size_t> starts = CharacterStarts(text);
  const std::optional<size_t> index = IndexOf(number, starts.size() - 1);
  if (!index.has_value()) return Value();
  return Value(text.substr(starts[*index], starts[*index + 1] - starts[*index]));
}

Value LoopAttribute(const Loop& loop, std::string_view name) {
  const int64_t index = static_cast<int64_t>(loop.index);
  const int64_t length = static_cast<int64_t>(loop.items.size());
  if (name == "index") return Value(index + 1);
  if (name == "index0") return Value(index);
  if (name == "revindex") return Value(length - index);
  if (name == "revindex0") return Value(length - index - 1);
  if (name == "first") return Value(index == 0);
  if (name == "last") return Value(index + 1 == length);
  if (name == "length") return Value(length);
  if (name == "depth") return Value(int64_t{1});  // of loops that call themselves
  if (name == "depth0") return Value(int64_t{0});
  if (name == "previtem") return index == 0 ? Value() : loop.items[loop.index - 1];
  if (name == "nextitem") return index + 1 == length ? Value() : loop.items[loop.index + 1];
  return Value();
}

Value MethodOf(const Value& value, std::string_view name) {
  const Builtin* const method = FindBuiltin(MethodsOf(value), name);
  if (method == nullptr) return Value();
  return Value(std::make_shared<const Callable>(Callable{.builtin = method, .self = value}));
}

// Where a slice's next item is, and how many there are, as Python's slice.indices() has it.
struct Steps {
  size_t at;
  size_t step;  // added without regard to 64 bits, so that it may go back
  size_t count;
};

int64_t Clamped(const Value& bound, int64_t fallback, int64_t size, int64_t low, int64_t high) {
  int64_t number = fallback;
  if (!bound.AsInteger(&number)) return fallback;
  if (number < 0) number = number < -size ? low : number + size;
  return std::clamp(number, low, high);
}

Steps StepsOf(const Values& bounds, int64_t size) {
  int64_t step = 1;
  bounds[2].AsInteger(&step);
  const int64_t low = step < 0 ? -1 : 0;
  const int64_t high = step < 0 ? size - 1 : size;
  const int64_t from = Clamped(bounds[0], step < 0 ? high : low, size, low, high);
  const int64_t to = Clamped(bounds[1], step < 0 ? low : high, size, low, high);
  const int64_t distance = step < 0 ? from - to : to - from;
  // Of the step's own size, without leaving 64 bits.
  const uint64_t size_of_step =
      step < 0 ? uint64_t{0} - static_cast<uint64_t>(step) : static_cast<uint64_t>(step);
  const size_t count =
      distance <= 0 ? 0
                    : static_cast<size_t>((static_cast<uint64_t>(distance) - 1) / size_of_step) + 1;
  return {static_cast<size_t>(from), static_cast<size_t>(step), count};
}

}  // namespace

bool IsHashable(const Value& value) {
  const Sequence* const sequence = value.AsSequence();
  if (sequence != nullptr && sequence->form == SequenceForm::kTuple)
    return std::all_of(sequence->items.begin(), sequence->items.end(), IsHashable);
  return value.AsMapping() == nullptr &&
         (sequence == nullptr || sequence->form > SequenceForm::kTuple);
}

std::vector<size_t> CharacterStarts(std::string_view text) {
  std::vector<size_t> starts;
  for (size_t at = 0; at < text.size(); ++at)
    if ((static_cast<uint8_t>(text[at]) & 0xc0) != 0x80) starts.push_back(at);
  starts.push_back(text.size());
  return starts;
}

const Value* FindKey(Rendering& rendering, const Mapping& mapping, const Value& key) {
  if (!IsHashable(key)) {
    rendering.Fail(Sentence("a value of type ", key.type_name(), " is no key"));
    return nullptr;
  }
  if (!rendering.Spend(mapping.entries.size() / 8 + 1)) return nullptr;
  const std::string* const text = key.AsText();
  for (const auto& [known, value] : mapping.entries) {
    const std::string* const known_text = known.AsText();
    const bool same = text != nullptr && known_text != nullptr   ? *text == *known_text
                      : text != nullptr || known_text != nullptr ? false
                                                                 : IsEqual(rendering, known, key);
    if (same) return &value;
  }
  return nullptr;
}

void PutKey(Rendering& rendering, const Value& key, const Value& value,
            std::vector<std::pair<Value, Value>>* entries) {
  if (!IsHashable(key)) rendering.Fail(Sentence("a value of type ", key.type_name(), " is no key"));
  if (!rendering.Spend(entries->size() / 8 + 1)) return;
  for (auto& [known, held] : *entries) {
    if (!IsEqual(rendering, known, key)) continue;
    held = value;
    return;
  }
  entries->emplace_back(key, value);
}

Value ItemOf(Rendering& rendering, const Value& value, const Value& key) {
  if (value.IsUndefined())
    return rendering.Fail(Sentence("'", value.AsUndefined()->name, "' is undefined"));
  int64_t number = 0;
  const bool whole = key.AsInteger(&number);
  if (const Mapping* const mapping = value.AsMapping()) {
    if (!IsHashable(key)) return Value();  // as of a key that is not there
    if (const Value* const found = FindKey(rendering, *mapping, key)) return *found;
  }
  const Sequence* const sequence = value.AsSequence();
  if (whole && sequence != nullptr && sequence->IsNumbered()) {
    const std::optional<size_t> index = IndexOf(number, sequence->items.size());
    return index.has_value() ? sequence->items[*index] : Value();
  }
  if (whole && value.AsText() != nullptr) return CharacterAt(rendering, *value.AsText(), number);
  if (key.AsText() == nullptr || value.AsMapping() != nullptr)
    return key.AsText() == nullptr ? Value() : MethodOf(value, *key.AsText());
  return AttributeOf(rendering, value, *key.AsText());
}

Value AttributeOf(Rendering& rendering, const Value& value, std::string_view name) {
  if (value.IsUndefined())
    return rendering.Fail(
        Sentence("'", value.AsUndefined()->name, "' is undefined, and has no '", name, "'"));
  if (Value method = MethodOf(value, name); !method.IsUndefined()) return method;
  if (const Loop* const loop = value.AsLoop()) return LoopAttribute(*loop, name);
  if (const Namespace* const names = value.AsNamespace()) {
    for (const auto& [known, held] : names->names)
      if (known == name) return held;
    return Value();
  }
  const Mapping* const mapping = value.AsMapping();
  const Value* const found =
      mapping == nullptr ? nullptr : FindKey(rendering, *mapping, Value(name));
  return found == nullptr ? Value() : *found;
}

Value SliceOf(Rendering& rendering, const Value& value, const Values& bounds) {
  for (const Value& bound : bounds) {
    int64_t number = 0;
    if (!bound.IsNone() && !bound.AsInteger(&number))
      return rendering.Fail(Sentence("a slice has a bound of type ", bound.type_name()));
    if (&bound == &bounds[2] && !bound.IsNone() && number == 0)
      return rendering.Fail("a slice has steps of 0");
  }
  const Sequence* const sequence = value.AsSequence();
  if (const std::string* const text = value.AsText()) {
    if (!rendering.SpendBytes(text->size() * 4)) return Value();
    const std::vector<size_t> starts = CharacterStarts(*text);
    Steps steps = StepsOf(bounds, static_cast<int64_t>(starts.size()) - 1);
    std::string part;
    for (size_t index = 0; index < steps.count; ++index, steps.at += steps.step) {
      part.append(*text, starts[steps.at], starts[steps.at + 1] - starts[steps.at]);
    }
    return rendering.MakeText(std::move(part));
  }
  if (sequence == nullptr || !sequence->IsNumbered())
    return rendering.Fail(Sentence("a value of type ", value.type_name(), " has no slices"));
  Steps steps = StepsOf(bounds, static_cast<int64_t>(sequence->items.size()));
  if (!rendering.Spend(steps.count)) return Value();
  Values items;
  for (size_t index = 0; index < steps.count; ++index, steps.at += steps.step)
    items.push_back(sequence->items[steps.at]);
  return rendering.Make(sequence->form, std::move(items));
}

}  // namespace serve::llm::jinja
