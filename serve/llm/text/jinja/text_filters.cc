// Filters of texts. Each makes a text of its input first, as Jinja's do.
#include "serve/llm/text/jinja/filters.h"
#include "serve/llm/text/jinja/operations.h"
#include "serve/llm/text/jinja/sentence.h"
#include "serve/llm/text/jinja/text_of.h"
#include "serve/llm/text/jinja/text_parts.h"
#include "serve/llm/text/letters.h"

namespace serve::llm::jinja {
namespace {

constexpr int64_t kIndentMax = 1024;

// The method of this name, of the input as text.
Value ByMethod(Rendering& rendering, const Value& self, std::string_view method, Values arguments) {
  const Value text = StringFilter(rendering, self, {});
  if (rendering.failed()) return Value();
  return CallBuiltin(rendering, *FindBuiltin(TextMethods(), method), text,
                     {.positional = std::move(arguments), .named = {}});
}

// So many spaces, or the text itself.
std::string IndentOf(Rendering& rendering, const Value& value, std::string_view parameter) {
  if (const std::string* const text = value.AsText()) return *text;
  const int64_t width = IntegerArgument(rendering, value, parameter);
  if (width > kIndentMax) rendering.Fail(Sentence("'", parameter, "' is over ", kIndentMax));
  return std::string(width < 0 || rendering.failed() ? 0 : static_cast<size_t>(width), ' ');
}

void ReadSeparators(Rendering& rendering, const Value& given, JsonLayout* layout) {
  const Sequence* const pair = given.AsSequence();
  if (pair == nullptr || pair->items.size() != 2) {
    rendering.Fail("'separators' must be two texts");
    return;
  }
  layout->between_items = TextArgument(rendering, pair->items[0], "separators");
  layout->after_key = TextArgument(rendering, pair->items[1], "separators");
}

}  // namespace

Value StringFilter(Rendering& rendering, const Value& self, const Given&) {
  if (self.AsText() != nullptr) return self;
  return rendering.MakeText(PlainText(rendering, self));
}

Value TrimFilter(Rendering& rendering, const Value& self, const Given& given) {
  return ByMethod(rendering, self, "strip", given.has(0) ? Values{given[0]} : Values());
}
Value UpperFilter(Rendering& rendering, const Value& self, const Given&) {
  return ByMethod(rendering, self, "upper", {});
}
Value LowerFilter(Rendering& rendering, const Value& self, const Given&) {
  return ByMethod(rendering, self, "lower", {});
}
Value CapitalizeFilter(Rendering& rendering, const Value& self, const Given&) {
  return ByMethod(rendering, self, "capitalize", {});
}

// Unlike the method: words begin behind white space, hyphens and opening brackets alone.
Value TitleFilter(Rendering& rendering, const Value& self, const Given&) {
  const Value text = StringFilter(rendering, self, {});
  if (rendering.failed() || !rendering.SpendBytes(text.AsText()->size() * 8)) return Value();
  const std::string_view all = *text.AsText();
  const auto splits = [](std::string_view character) {
    return std::string_view("-({[<").find(character) != std::string_view::npos ||
           !Trimmed(character, std::nullopt, Ends::kBoth).size();
  };
  const std::vector<size_t> starts = CharacterStarts(all);
  std::string title;
  for (size_t index = 0; index + 1 < starts.size();) {
    size_t end = index + 1;
    const auto character = [&](size_t at) {
      return all.substr(starts[at], starts[at + 1] - starts[at]);
    };
    const bool between = splits(character(index));
    while (end + 1 < starts.size() && splits(character(end)) == between) ++end;
    const std::string_view rest = all.substr(starts[index + 1], starts[end] - starts[index + 1]);
    title += between ? std::string(character(index)) : UpperCase(character(index));
    title += between ? std::string(rest) : LowerCase(rest);
    index = end;
  }
  return rendering.MakeText(std::move(title));
}

Value ReplaceFilter(Rendering& rendering, const Value& self, const Given& given) {
  const Value from = StringFilter(rendering, given[0], {});
  const Value to = StringFilter(rendering, given[1], {});
  Values arguments{from, to};
  if (given.has(2) && !given[2].IsNone()) arguments.push_back(given[2]);
  return ByMethod(rendering, self, "replace", std::move(arguments));
}

// Each line but the first; with `first` that one too; with `blank` also empty ones.
Value IndentFilter(Rendering& rendering, const Value& self, const Given& given) {
  const std::string indent =
      given.has(0) ? IndentOf(rendering, given[0], "width") : std::string(4, ' ');
  const bool first = given.has(1) && IsTrue(given[1]);
  const bool blank = given.has(2) && IsTrue(given[2]);
  const std::string_view given_text = TextArgument(rendering, self, "s");
  if (rendering.failed() || !rendering.SpendBytes(given_text.size())) return Value();
  const std::string text = std::string(given_text) + "\n";
  std::string indented(first ? indent : "");
  bool is_first = true;
  for (const std::string_view line : LinesOf(text, false)) {
    if (!rendering.SpendBytes(indent.size())) return Value();
    if (!is_first) indented += "\n";
    if (!is_first && (blank || !line.empty())) indented += indent;
    indented += line;
    is_first = false;
    if (indented.size() > kTextBytesMax) return rendering.Fail("a text grows too long");
  }
  return rendering.MakeText(std::move(indented));
}

// As transformers has it, not Jinja: nothing is escaped for HTML.
Value JsonFilter(Rendering& rendering, const Value& self, const Given& given) {
  JsonLayout layout;
  layout.ascii = given.has(0) && IsTrue(given[0]);
  layout.indented = given.has(1) && !given[1].IsNone();
  if (layout.indented) {
    layout.indent = IndentOf(rendering, given[1], "indent");
    layout.between_items = ",";
  }
  if (given.has(2) && !given[2].IsNone()) ReadSeparators(rendering, given[2], &layout);
  layout.sorted = given.has(3) && IsTrue(given[3]);
  return rendering.MakeText(JsonText(rendering, self, layout));
}

Value JoinFilter(Rendering& rendering, const Value& self, const Given& given) {
  const std::string between = given.has(0) ? PlainText(rendering, given[0]) : "";
  const bool attribute = given.has(1) && !given[1].IsNone();
  std::string joined;
  bool first = true;
  for (const Value& item : ItemsOf(rendering, self)) {
    const std::string text =
        PlainText(rendering, attribute ? AttributePath(rendering, item, given[1]) : item);
    if (!first) joined += between;
    first = false;
    joined += text;
    if (joined.size() > kTextBytesMax) return rendering.Fail("a text grows too long");
    if (!rendering.SpendBytes(text.size() + between.size())) return Value();
  }
  return rendering.MakeText(std::move(joined));
}

}  // namespace serve::llm::jinja
