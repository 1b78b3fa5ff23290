// What filters, tests, methods and functions have in common: rows of tables, with the names of
// their parameters as Python has them.
//
// Thread safety: functions without state.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/llm/text/jinja/rendering.h"
#include "serve/llm/text/jinja/value.h"

namespace serve::llm::jinja {

struct Arguments {
  Values positional;
  std::vector<std::pair<std::string_view, Value>> named;
};

// Arguments by parameter.
struct Given {
  Values values;  // undefined where not given
  std::vector<bool> given;
  const Arguments* all = nullptr;

  bool has(size_t index) const { return given[index]; }
  const Value& operator[](size_t index) const { return values[index]; }
};

struct Builtin {
  std::string_view name;
  // Separated by spaces; with a '?' they may be left out. "*": the function reads `all` itself.
  std::string_view parameters;
  Value (*apply)(Rendering&, const Value& self, const Given& given);
};

// Null: the table has none of this name.
const Builtin* FindBuiltin(std::span<const Builtin> table, std::string_view name);

Value CallBuiltin(Rendering& rendering, const Builtin& builtin, const Value& self,
                  const Arguments& arguments);

std::span<const Builtin> Filters();    // filters.cc
std::span<const Builtin> Tests();      // tests.cc; they return true or false
std::span<const Builtin> Functions();  // functions.cc; self is undefined
std::span<const Builtin> TextMethods();
std::span<const Builtin> MappingMethods();
std::span<const Builtin> SequenceMethods();  // of lists and tuples
std::span<const Builtin> LoopMethods();

// Methods of values of this kind; empty: such values have none.
std::span<const Builtin> MethodsOf(const Value& value);
// Whether values of some kind have such a method.
bool IsMethodName(std::string_view name);

// Helpers of those tables. They fail the rendering where the argument is of another type; then the
// result has no meaning.
std::string_view TextArgument(Rendering& rendering, const Value& value, std::string_view parameter);
int64_t IntegerArgument(Rendering& rendering, const Value& value, std::string_view parameter);

}  // namespace serve::llm::jinja
