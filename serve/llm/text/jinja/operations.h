// What operators and subscripts do, as in Python; what a loop reads of a value.
//
// Thread safety: functions of one rendering. An operation that Python refuses fails the rendering;
// then the result has no meaning.
#pragma once

#include <optional>
#include <string_view>

#include "serve/llm/text/jinja/rendering.h"
#include "serve/llm/text/jinja/syntax.h"

namespace serve::llm::jinja {

bool IsTrue(const Value& value);
bool IsEqual(Rendering& rendering, const Value& left, const Value& right);
bool IsLess(Rendering& rendering, const Value& left, const Value& right);
bool IsIn(Rendering& rendering, const Value& item, const Value& container);
bool Compare(Rendering& rendering, Operator which, const Value& left, const Value& right);

Value Calculate(Rendering& rendering, Operator which, const Value& left, const Value& right);
Value Negative(Rendering& rendering, const Value& value);

// value[key]; undefined where there is none.
Value ItemOf(Rendering& rendering, const Value& value, const Value& key);
// value.name
Value AttributeOf(Rendering& rendering, const Value& value, std::string_view name);
// value[from:to:step], each of which may be None.
Value SliceOf(Rendering& rendering, const Value& value, const Values& bounds);

// The items that a loop goes through.
Values ItemsOf(Rendering& rendering, const Value& value);
// len(); nothing: the value has none, and the rendering has not failed.
std::optional<int64_t> LengthOf(Rendering& rendering, const Value& value);

// Characters of a text: bytes where each begins, and the text's size at the end.
std::vector<size_t> CharacterStarts(std::string_view text);
// A mapping takes the value as a key. As in Python, a list, a mapping, and a tuple that holds one
// of them are no keys.
bool IsHashable(const Value& value);
// Null: there is no such key.
const Value* FindKey(Rendering& rendering, const Mapping& mapping, const Value& key);
// With the key's value put in or replaced, at its place.
void PutKey(Rendering& rendering, const Value& key, const Value& value,
            std::vector<std::pair<Value, Value>>* entries);

// Whether both are the same value of a kind that is compared by itself, as None is.
bool IsSame(const Value& left, const Value& right);

}  // namespace serve::llm::jinja
