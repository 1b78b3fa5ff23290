#include "serve/llm/text/jinja/text_of.h"

#include <charconv>
#include <cmath>

#include "serve/llm/text/jinja/sentence.h"
#include "serve/llm/text/jinja/text_literal.h"

namespace serve::llm::jinja {
namespace {

std::string ReprOf(Rendering& rendering, const Value& value);

// False: the rendering fails, so that a small value of many shared parts makes no endless text.
bool Append(Rendering& rendering, std::string_view text, std::string* all) {
  all->append(text);
  if (all->size() > kTextBytesMax) rendering.Fail("a text grows too long");
  return rendering.SpendBytes(text.size());
}

std::string SequenceRepr(Rendering& rendering, const Sequence& sequence) {
  const bool tuple = sequence.form == SequenceForm::kTuple;
  std::string all(tuple ? "(" : "[");
  for (const Value& item : sequence.items) {
    if (all.size() > 1) all += ", ";
    if (!Append(rendering, ReprOf(rendering, item), &all)) return all;
  }
  if (tuple && sequence.items.size() == 1) all.push_back(',');
  return all + (tuple ? ")" : "]");
}

std::string MappingRepr(Rendering& rendering, const Mapping& mapping) {
  std::string all("{");
  for (const auto& [key, value] : mapping.entries) {
    if (all.size() > 1) all += ", ";
    if (!Append(rendering, ReprOf(rendering, key), &all)) return all;
    all += ": ";
    if (!Append(rendering, ReprOf(rendering, value), &all)) return all;
  }
  return all + "}";
}

std::string ReprOf(Rendering& rendering, const Value& value) {
  if (!rendering.Spend(1)) return "";
  if (value.IsUndefined()) return "Undefined";
  if (const std::string* const text = value.AsText()) return Quoted(*text);
  const Sequence* const sequence = value.AsSequence();
  if (sequence != nullptr && sequence->form <= SequenceForm::kTuple)
    return SequenceRepr(rendering, *sequence);
  if (const Mapping* const mapping = value.AsMapping()) return MappingRepr(rendering, *mapping);
  return PlainText(rendering, value);
}

}  // namespace

std::string FloatText(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[32];
  const std::to_chars_result shortest =
      std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::scientific);
  const std::string text(buffer, shortest.ptr);
  const size_t mark = text.find('e');
  const int exponent = std::stoi(text.substr(mark + 1));
  if (exponent < -4 || exponent >= 16) return text;
  const std::to_chars_result fixed =
      std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::fixed);
  std::string plain(buffer, fixed.ptr);
  if (plain.find('.') == plain.npos) plain += ".0";
  return plain;
}

std::string PlainText(Rendering& rendering, const Value& value) {
  if (value.IsUndefined()) return "";
  if (value.IsNone()) return "None";
  if (const bool* const truth = value.AsTruth()) return *truth ? "True" : "False";
  if (const double* const number = value.AsFloat()) return FloatText(*number);
  int64_t number;
  if (value.AsInteger(&number)) return std::to_string(number);
  if (const std::string* const text = value.AsText()) return *text;
  const Sequence* const sequence = value.AsSequence();
  const bool shown = value.AsMapping() != nullptr ||
                     (sequence != nullptr && sequence->form <= SequenceForm::kTuple);
  if (shown) return ReprOf(rendering, value);
  rendering.Fail(Sentence("a value of type ", value.type_name(), " has no text"));
  return "";
}

}  // namespace serve::llm::jinja
