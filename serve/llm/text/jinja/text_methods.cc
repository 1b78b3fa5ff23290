#include <algorithm>

#include "serve/llm/text/jinja/builtin.h"
#include "serve/llm/text/jinja/operations.h"
#include "serve/llm/text/jinja/sentence.h"
#include "serve/llm/text/jinja/text_of.h"
#include "serve/llm/text/jinja/text_parts.h"
#include "serve/llm/text/letters.h"
#include "serve/llm/text/text_search.h"

namespace serve::llm::jinja {
namespace {

Value Strip(Rendering& rendering, const Value& self, const Given& given, Ends ends) {
  std::optional<std::string_view> characters;
  if (given.has(0) && !given[0].IsNone()) characters = TextArgument(rendering, given[0], "chars");
  const size_t each = characters.has_value() ? characters->size() + 1 : 1;
  if (!rendering.SpendBytes(self.AsText()->size() * each)) return Value();
  return rendering.MakeText(std::string(Trimmed(*self.AsText(), characters, ends)));
}

Value StripBoth(Rendering& rendering, const Value& self, const Given& given) {
  return Strip(rendering, self, given, Ends::kBoth);
}
Value StripLeft(Rendering& rendering, const Value& self, const Given& given) {
  return Strip(rendering, self, given, Ends::kLeft);
}
Value StripRight(Rendering& rendering, const Value& self, const Given& given) {
  return Strip(rendering, self, given, Ends::kRight);
}

// A text for each part. Every part is charged before any is made.
Value ListOf(Rendering& rendering, const std::vector<std::string_view>& parts, size_t bytes) {
  if (!rendering.Spend(parts.size()) || !rendering.SpendBytes(bytes)) return Value();
  return rendering.MakeList(Values(parts.begin(), parts.end()));
}

Value Split(Rendering& rendering, const Value& self, const Given& given) {
  const std::string& text = *self.AsText();
  const int64_t cuts_max =
      given.has(1) ? IntegerArgument(rendering, given[1], "maxsplit") : int64_t{-1};
  if (!rendering.SpendBytes(text.size())) return Value();
  if (!given.has(0) || given[0].IsNone())
    return ListOf(rendering, SplitAtSpace(text, cuts_max), text.size());
  const std::string_view separator = TextArgument(rendering, given[0], "sep");
  if (rendering.failed()) return Value();
  if (separator.empty()) return rendering.Fail("a text is split at an empty text");
  return ListOf(rendering, SplitAt(text, separator, cuts_max), text.size());
}

Value SplitLines(Rendering& rendering, const Value& self, const Given& given) {
  const std::string& text = *self.AsText();
  if (!rendering.SpendBytes(text.size())) return Value();
  return ListOf(rendering, LinesOf(text, given.has(0) && IsTrue(given[0])), text.size());
}

// Whether one of the texts that the argument names is at an end of this one.
Value IsAtAnEnd(Rendering& rendering, const Value& self, const Value& wanted, bool start) {
  const std::string_view text = *self.AsText();
  const Sequence* const several = wanted.AsSequence();
  const bool tuple = several != nullptr && several->form == SequenceForm::kTuple;
  const Values wanted_texts = tuple ? several->items : Values{wanted};
  for (const Value& each : wanted_texts) {
    const std::string_view part = TextArgument(rendering, each, start ? "prefix" : "suffix");
    if (!rendering.SpendBytes(part.size())) return Value();
    if (start ? text.starts_with(part) : text.ends_with(part)) return Value(true);
  }
  return Value(false);
}

Value StartsWith(Rendering& rendering, const Value& self, const Given& given) {
  return IsAtAnEnd(rendering, self, given[0], true);
}
Value EndsWith(Rendering& rendering, const Value& self, const Given& given) {
  return IsAtAnEnd(rendering, self, given[0], false);
}

template <std::string (*kChange)(std::string_view)>
Value Changed(Rendering& rendering, const Value& self, const Given&) {
  if (!rendering.SpendBytes(self.AsText()->size() * 4)) return Value();
  return rendering.MakeText(kChange(*self.AsText()));
}

Value Replace(Rendering& rendering, const Value& self, const Given& given) {
  const std::string_view from = TextArgument(rendering, given[0], "old");
  const std::string_view to = TextArgument(rendering, given[1], "new");
  const int64_t count = given.has(2) ? IntegerArgument(rendering, given[2], "count") : int64_t{-1};
  // As long as the result may become: a replacement for each character.
  const size_t longest = self.AsText()->size() + 1;
  if (rendering.failed() || !rendering.SpendBytes(longest)) return Value();
  const size_t places = from.empty() ? longest : longest / from.size();
  if (to.size() > kTextBytesMax / (places + 1)) return rendering.Fail("a text grows too long");
  return rendering.MakeText(Replaced(*self.AsText(), from, to, count));
}

// Where the argument lies, in characters; -1: nowhere.
int64_t PlaceOf(Rendering& rendering, const Value& self, const Value& wanted, bool last) {
  const std::string_view text = *self.AsText();
  const std::string_view part = TextArgument(rendering, wanted, "sub");
  if (rendering.failed() || !rendering.SpendBytes(2 * text.size() + part.size())) return -1;
  const size_t at = last ? FindLastText(text, part) : FindText(text, part);
  if (at == text.npos) return -1;
  return static_cast<int64_t>(CharacterStarts(text.substr(0, at)).size()) - 1;
}

Value Find(Rendering& rendering, const Value& self, const Given& given) {
  return Value(PlaceOf(rendering, self, given[0], false));
}
Value FindLast(Rendering& rendering, const Value& self, const Given& given) {
  return Value(PlaceOf(rendering, self, given[0], true));
}
Value IndexInText(Rendering& rendering, const Value& self, const Given& given) {
  const int64_t place = PlaceOf(rendering, self, given[0], false);
  return place < 0 ? rendering.Fail("a text does not hold the text that it is searched for")
                   : Value(place);
}

Value CountInText(Rendering& rendering, const Value& self, const Given& given) {
  const std::string_view part = TextArgument(rendering, given[0], "sub");
  const std::string& text = *self.AsText();
  if (rendering.failed() || !rendering.SpendBytes(text.size() * 2)) return Value();
  if (part.empty()) return Value(static_cast<int64_t>(CharacterStarts(text).size()));
  return Value(static_cast<int64_t>(SplitAt(text, part, -1).size()) - 1);
}

Value Join(Rendering& rendering, const Value& self, const Given& given) {
  std::string joined;
  bool first = true;
  for (const Value& item : ItemsOf(rendering, given[0])) {
    if (!first) joined += *self.AsText();
    first = false;
    const std::string_view text = TextArgument(rendering, item, "iterable");
    joined += text;
    if (joined.size() > kTextBytesMax) return rendering.Fail("a text grows too long");
    if (!rendering.SpendBytes(text.size() + self.AsText()->size())) return Value();
  }
  return rendering.MakeText(std::move(joined));
}

Value WithoutPrefix(Rendering& rendering, const Value& self, const Given& given) {
  std::string_view text = *self.AsText();
  const std::string_view prefix = TextArgument(rendering, given[0], "prefix");
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  return rendering.MakeText(std::string(text));
}
Value WithoutSuffix(Rendering& rendering, const Value& self, const Given& given) {
  std::string_view text = *self.AsText();
  const std::string_view suffix = TextArgument(rendering, given[0], "suffix");
  if (text.ends_with(suffix)) text.remove_suffix(suffix.size());
  return rendering.MakeText(std::string(text));
}

template <bool (*kIs)(std::string_view)>
Value Is(Rendering& rendering, const Value& self, const Given&) {
  if (!rendering.SpendBytes(self.AsText()->size())) return Value();
  return Value(kIs(*self.AsText()));
}
bool IsSpace(std::string_view text) { return !text.empty() && LeadingSpace(text) == text.size(); }

constexpr Builtin kTextMethods[] = {
    {"capitalize", "", Changed<Capitalised>},
    {"count", "sub", CountInText},
    {"endswith", "suffix", EndsWith},
    {"find", "sub", Find},
    {"index", "sub", IndexInText},
    {"islower", "", Is<IsLowerCase>},
    {"isspace", "", Is<IsSpace>},
    {"isupper", "", Is<IsUpperCase>},
    {"join", "iterable", Join},
    {"lower", "", Changed<LowerCase>},
    {"lstrip", "chars?", StripLeft},
    {"removeprefix", "prefix", WithoutPrefix},
    {"removesuffix", "suffix", WithoutSuffix},
    {"replace", "old new count?", Replace},
    {"rfind", "sub", FindLast},
    {"rstrip", "chars?", StripRight},
    {"split", "sep? maxsplit?", Split},
    {"splitlines", "keepends?", SplitLines},
    {"startswith", "prefix", StartsWith},
    {"strip", "chars?", StripBoth},
    {"title", "", Changed<TitleCase>},
    {"upper", "", Changed<UpperCase>},
};

}  // namespace

std::span<const Builtin> TextMethods() { return kTextMethods; }

}  // namespace serve::llm::jinja
