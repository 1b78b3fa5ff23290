// The functions that a template may call.
#include <ctime>

#include "serve/llm/text/jinja/builtin.h"
#include "serve/llm/text/jinja/operations.h"
#include "serve/llm/text/jinja/sentence.h"
#include "serve/llm/text/jinja/text_of.h"

namespace serve::llm::jinja {
namespace {

constexpr size_t kRangeMax = 100'000;  // as in Jinja's sandbox
constexpr size_t kTimeFormatBytesMax = 256;
// The directives that Python documents. Others differ among C libraries.
constexpr std::string_view kTimeDirectives = "aAwdbBmyYHIMSfpjUWcxXGuV%";

Value Range(Rendering& rendering, const Value&, const Given& given) {
  const bool one = !given.has(1);
  const int64_t from = one ? 0 : IntegerArgument(rendering, given[0], "start");
  const int64_t to = IntegerArgument(rendering, given[one ? 0 : 1], "stop");
  const int64_t step = given.has(2) ? IntegerArgument(rendering, given[2], "step") : int64_t{1};
  if (!rendering.failed() && step == 0) rendering.Fail("a range has steps of 0");
  Values items;
  for (int64_t at = from; !rendering.failed() && (step > 0 ? at < to : at > to);) {
    if (items.size() == kRangeMax) return rendering.Fail("a range is too long");
    items.emplace_back(at);
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return rendering.Make(SequenceForm::kRange, std::move(items));
}

// What dict() and namespace() make of their arguments: a mapping's entries, then the named ones.
std::vector<std::pair<Value, Value>> EntriesOf(Rendering& rendering, const Arguments& arguments) {
  std::vector<std::pair<Value, Value>> entries;
  const Mapping* const mapping =
      arguments.positional.empty() ? nullptr : arguments.positional[0].AsMapping();
  if (arguments.positional.size() > (mapping == nullptr ? 0 : 1))
    rendering.Fail("only a mapping and named values make a mapping");
  if (mapping != nullptr && rendering.Spend(mapping->entries.size())) entries = mapping->entries;
  for (const auto& [name, value] : arguments.named) PutKey(rendering, Value(name), value, &entries);
  return entries;
}

Value Dictionary(Rendering& rendering, const Value&, const Given& given) {
  return rendering.MakeDictionary(EntriesOf(rendering, *given.all));
}

Value MakeNamespace(Rendering& rendering, const Value&, const Given& given) {
  Namespace* const made = rendering.NewNamespace();
  for (auto& [key, value] : EntriesOf(rendering, *given.all))
    if (key.AsText() != nullptr) made->names.emplace_back(*key.AsText(), value);
  return Value(made);
}

Value Raise(Rendering& rendering, const Value&, const Given& given) {
  const std::string text = PlainText(rendering, given[0]);
  return rendering.RaiseException(text);
}

Value FormattedNow(Rendering& rendering, const Value&, const Given& given) {
  const std::string_view format = TextArgument(rendering, given[0], "format");
  if (format.size() > kTimeFormatBytesMax) return rendering.Fail("a format of a time is too long");
  std::string known;
  for (size_t at = 0; at < format.size(); ++at) {
    known.push_back(format[at]);
    if (format[at] != '%') continue;
    const char directive = ++at < format.size() ? format[at] : '\0';
    if (kTimeDirectives.find(directive) == kTimeDirectives.npos || directive == '\0')
      return rendering.Fail("a format of a time has a directive that is not supported");
    if (directive == 'f')
      known.replace(known.size() - 1, 1, "000000");  // no fraction of a second is told
    else
      known.push_back(directive);
  }
  known.push_back('.');  // so that an empty result is none
  char text[kTimeFormatBytesMax * 32];
  const size_t length = std::strftime(text, sizeof text, known.c_str(), &rendering.now());
  if (length == 0) return rendering.Fail("a time is too long");
  return rendering.MakeText(std::string(text, length - 1));
}

constexpr Builtin kFunctions[] = {
    {"dict", "*", Dictionary},
    {"namespace", "*", MakeNamespace},
    {"raise_exception", "message", Raise},
    {"range", "start stop? step?", Range},
    {"strftime_now", "format", FormattedNow},
};

}  // namespace

std::span<const Builtin> Functions() { return kFunctions; }

}  // namespace serve::llm::jinja
