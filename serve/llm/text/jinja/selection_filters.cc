// Filters that choose items, or make others of them.
#include <algorithm>
#include <charconv>

#include "serve/llm/text/jinja/filters.h"
#include "serve/llm/text/jinja/operations.h"
#include "serve/llm/text/jinja/sentence.h"
#include "serve/llm/text/jinja/text_parts.h"

namespace serve::llm::jinja {
namespace {

// A part of a path: a number where it is one.
Value PartOf(std::string_view part) {
  int64_t number = 0;
  const bool digits = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
  if (digits && std::from_chars(part.data(), part.data() + part.size(), number).ec == std::errc())
    return Value(number);
  return Value(part);
}

// A filter or a test by the name that an argument has, with the arguments behind it.
struct Named {
  const Builtin* builtin = nullptr;
  Arguments arguments;
};

Named NamedBy(Rendering& rendering, std::span<const Builtin> table, const Arguments& all,
              size_t index) {
  Named named;
  if (index >= all.positional.size()) return named;
  const std::string_view name = TextArgument(rendering, all.positional[index], "name");
  named.builtin = FindBuiltin(table, name);
  if (named.builtin == nullptr) rendering.Fail(Sentence("'", name, "' is not supported by name"));
  named.arguments.positional.assign(all.positional.begin() + static_cast<ptrdiff_t>(index) + 1,
                                    all.positional.end());
  named.arguments.named = all.named;
  return named;
}

// Items of which the test, or their own truth, is `wanted`. With `attribute` the test looks at the
// attribute that the first argument names.
Value Chosen(Rendering& rendering, const Value& self, const Given& given, bool attribute,
             bool wanted) {
  const Arguments& all = *given.all;
  if (attribute && all.positional.empty())
    return rendering.Fail("the name of an attribute is missing");
  const Named test = NamedBy(rendering, Tests(), all, attribute ? 1 : 0);
  Values chosen;
  for (const Value& item : ItemsOf(rendering, self)) {
    if (rendering.failed()) return Value();
    const Value looked = attribute ? AttributePath(rendering, item, all.positional[0]) : item;
    const bool is = test.builtin == nullptr
                        ? IsTrue(looked)
                        : IsTrue(CallBuiltin(rendering, *test.builtin, looked, test.arguments));
    if (is == wanted) chosen.push_back(item);
  }
  return rendering.Make(SequenceForm::kGenerator, std::move(chosen));
}

// Null: no such argument.
const Value* FindNamed(const Arguments& arguments, std::string_view name) {
  for (const auto& [known, value] : arguments.named)
    if (known == name) return &value;
  return nullptr;
}

}  // namespace

Value AttributePath(Rendering& rendering, const Value& value, const Value& path) {
  const std::string* const text = path.AsText();
  if (path.IsNone()) return value;
  if (text == nullptr) return ItemOf(rendering, value, path);
  Value found = value;
  if (!rendering.SpendBytes(text->size())) return Value();
  for (const std::string_view part : SplitAt(*text, ".", -1)) {
    if (rendering.failed()) return Value();
    found = ItemOf(rendering, found, PartOf(part));
  }
  return found;
}

Value SelectFilter(Rendering& rendering, const Value& self, const Given& given) {
  return Chosen(rendering, self, given, false, true);
}
Value RejectFilter(Rendering& rendering, const Value& self, const Given& given) {
  return Chosen(rendering, self, given, false, false);
}
Value SelectAttributeFilter(Rendering& rendering, const Value& self, const Given& given) {
  return Chosen(rendering, self, given, true, true);
}
Value RejectAttributeFilter(Rendering& rendering, const Value& self, const Given& given) {
  return Chosen(rendering, self, given, true, false);
}

// Each item's attribute, or what a filter makes of it.
Value MapFilter(Rendering& rendering, const Value& self, const Given& given) {
  const Arguments& all = *given.all;
  const Value* const attribute = all.positional.empty() ? FindNamed(all, "attribute") : nullptr;
  const Value* const fallback = FindNamed(all, "default");
  if (attribute == nullptr && all.positional.empty())
    return rendering.Fail("'map' needs a filter or an attribute");
  const Named filter = attribute != nullptr ? Named() : NamedBy(rendering, Filters(), all, 0);
  Values made;
  for (const Value& item : ItemsOf(rendering, self)) {
    if (rendering.failed()) return Value();
    Value each = attribute != nullptr
                     ? AttributePath(rendering, item, *attribute)
                     : CallBuiltin(rendering, *filter.builtin, item, filter.arguments);
    const bool replaced = attribute != nullptr && fallback != nullptr && each.IsUndefined();
    made.push_back(replaced ? *fallback : std::move(each));
  }
  return rendering.Make(SequenceForm::kGenerator, std::move(made));
}

}  // namespace serve::llm::jinja
