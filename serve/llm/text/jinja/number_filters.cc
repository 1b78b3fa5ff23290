// Filters of numbers, and what makes numbers of texts.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "serve/llm/text/jinja/filters.h"
#include "serve/llm/text/jinja/operations.h"
#include "serve/llm/text/jinja/sentence.h"
#include "serve/llm/text/jinja/text_parts.h"

namespace serve::llm::jinja {
namespace {

// The digits of a text for Python's int() and float(): no white space around them, no plus, no
// single
// '_' between digits. Empty: the text is no number.
std::string DigitsOf(std::string_view text) {
  text = Trimmed(text, std::nullopt, Ends::kBoth);
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return "";
  }
  std::string digits;
  const auto is_digit = [&](size_t at) {
    return at < text.size() && text[at] >= '0' && text[at] <= '9';
  };
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '_' && (at == 0 || !is_digit(at - 1) || !is_digit(at + 1))) return "";
    if (text[at] != '_') digits.push_back(text[at]);
  }
  return digits;
}

std::optional<double> FloatOfText(std::string_view text) {
  const std::string digits = DigitsOf(text);
  double number = 0;
  const std::from_chars_result read =
      std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = !digits.empty() && read.ptr == digits.data() + digits.size();
  // A number with a payload, nan(1), is none for Python.
  if (!whole || digits.find('(') != digits.npos) return std::nullopt;
  if (read.ec == std::errc::result_out_of_range) return std::nullopt;
  return read.ec == std::errc() ? std::optional<double>(number) : std::nullopt;
}

Value Truncated(Rendering& rendering, double number, const Value& otherwise) {
  if (!std::isfinite(number)) return otherwise;
  constexpr double kBound = 9223372036854775808.0;  // 2^63
  if (number >= kBound || number < -kBound)
    return rendering.Fail("a whole number is beyond 64 bits, which is not supported");
  return Value(static_cast<int64_t>(number));
}

}  // namespace

Value AbsFilter(Rendering& rendering, const Value& self, const Given&) {
  int64_t number = 0;
  if (const double* const given = self.AsFloat()) return Value(std::fabs(*given));
  if (self.AsInteger(&number)) return number < 0 ? Negative(rendering, self) : Value(number);
  return rendering.Fail(Sentence("a value of type ", self.type_name(), " is no number"));
}

Value FloatFilter(Rendering& rendering, const Value& self, const Given& given) {
  const Value otherwise = given.has(0) ? given[0] : Value(0.0);
  int64_t number = 0;
  if (self.IsUndefined()) return rendering.Fail("an undefined value is no number");
  if (self.AsFloat() != nullptr) return self;
  if (self.AsInteger(&number)) return Value(static_cast<double>(number));
  const std::optional<double> read =
      self.AsText() == nullptr ? std::nullopt : FloatOfText(*self.AsText());
  return read.has_value() ? Value(*read) : otherwise;
}

Value IntFilter(Rendering& rendering, const Value& self, const Given& given) {
  const Value otherwise = given.has(0) ? given[0] : Value(int64_t{0});
  int64_t number = 0;
  if (self.IsUndefined()) return rendering.Fail("an undefined value is no number");
  if (given.has(1) && !IsEqual(rendering, given[1], Value(int64_t{10})))
    return rendering.Fail("whole numbers are read in base 10 alone");
  if (self.AsInteger(&number)) return Value(number);
  if (const double* const real = self.AsFloat()) return Truncated(rendering, *real, otherwise);
  if (self.AsText() == nullptr) return otherwise;
  const std::string digits = DigitsOf(*self.AsText());
  const std::from_chars_result read =
      std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (!digits.empty() && read.ptr == digits.data() + digits.size()) {
    if (read.ec == std::errc()) return Value(number);
    return rendering.Fail("a whole number is beyond 64 bits, which is not supported");
  }
  const std::optional<double> real = FloatOfText(*self.AsText());
  return real.has_value() ? Truncated(rendering, *real, otherwise) : otherwise;
}

Value RoundFilter(Rendering& rendering, const Value& self, const Given& given) {
  constexpr int64_t kDigitsMax = 15;
  if (given.has(1) && !IsEqual(rendering, given[1], Value("common")))
    return rendering.Fail("numbers are rounded by the method 'common' alone");
  const int64_t digits =
      given.has(0) ? IntegerArgument(rendering, given[0], "precision") : int64_t{0};
  if (digits < 0 || digits > kDigitsMax)
    return rendering.Fail("numbers are rounded to 0 to 15 digits");
  int64_t number = 0;
  if (self.AsInteger(&number)) return Value(number);
  if (self.AsFloat() == nullptr)
    return rendering.Fail(Sentence("a value of type ", self.type_name(), " is no number"));
  // The C library rounds the exact number to the nearest, halves to even digits, as Python does.
  char text[512];
  std::snprintf(text, sizeof text, "%.*f", static_cast<int>(digits), *self.AsFloat());
  double rounded = *self.AsFloat();
  std::from_chars(text, text + std::char_traits<char>::length(text), rounded);
  return Value(rounded);
}

}  // namespace serve::llm::jinja
