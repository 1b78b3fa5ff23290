#include <algorithm>
#include <cmath>
#include <cstdio>

#include "serve/llm/text/jinja/sentence.h"
#include "serve/llm/text/jinja/text_of.h"
#include "serve/llm/text/utf8.h"

namespace serve::llm::jinja {
namespace {

void AppendEscape(uint32_t code, std::string* all) {
  char escape[16];
  std::snprintf(escape, sizeof escape, "\\u%04x", code);
  all->append(escape);
}

// Beyond ASCII, where that is to be escaped: as UTF-16, which is what JSON's escapes are.
void AppendCodePoint(uint32_t code, std::string* all) {
  if (code < 0x10000) return AppendEscape(code, all);
  AppendEscape(0xd800 + ((code - 0x10000) >> 10), all);
  AppendEscape(0xdc00 + ((code - 0x10000) & 0x3ff), all);
}

std::string QuotedForJson(std::string_view text, bool ascii) {
  constexpr std::string_view kEscaped = "\"\\\n\r\t\f\b";
  constexpr std::string_view kLetters = "\"\\nrtfb";
  std::string quoted("\"");
  for (size_t at = 0; at < text.size();) {
    const size_t length = std::max<size_t>(CharacterBytes(text.substr(at)), 1);
    const std::string_view character = text.substr(at, length);
    const size_t escape = length == 1 ? kEscaped.find(character[0]) : kEscaped.npos;
    if (escape != kEscaped.npos) {
      quoted.push_back('\\');
      quoted.push_back(kLetters[escape]);
    } else if (const uint32_t code = CodePointOf(character);
               code < 0x20 || (ascii && code > 0x7e)) {
      // DEL is ASCII, and stays.
      code == 0x7f ? quoted.push_back('\x7f') : AppendCodePoint(code, &quoted);
    } else {
      quoted += character;
    }
    at += length;
  }
  return quoted + "\"";
}

class JsonWriter {
 public:
  JsonWriter(Rendering& rendering, const JsonLayout& layout)
      : rendering_(rendering), layout_(layout) {}

  void Write(const Value& value);
  std::string Take() { return std::move(text_); }

 private:
  bool Add(std::string_view text);
  void Break();
  void WriteNumber(double number);
  void WriteSequence(const Sequence& sequence);
  void WriteMapping(const Mapping& mapping);
  std::string KeyOf(const Value& key);

  Rendering& rendering_;
  const JsonLayout& layout_;
  std::string text_;
  size_t level_ = 0;
};

bool JsonWriter::Add(std::string_view text) {
  text_ += text;
  if (text_.size() > kTextBytesMax) rendering_.Fail("a text of JSON grows too long");
  return rendering_.SpendBytes(text.size());
}

void JsonWriter::Break() {
  if (!layout_.indented) return;
  Add("\n");
  for (size_t level = 0; level < level_ && Add(layout_.indent); ++level) {
  }
}

void JsonWriter::WriteNumber(double number) {
  if (std::isnan(number))
    Add("NaN");
  else if (std::isinf(number))
    Add(number < 0 ? "-Infinity" : "Infinity");
  else
    Add(FloatText(number));
}

void JsonWriter::WriteSequence(const Sequence& sequence) {
  if (sequence.items.empty()) return void(Add("[]"));
  Add("[");
  ++level_;
  for (size_t index = 0; index < sequence.items.size() && !rendering_.failed(); ++index) {
    if (index > 0) Add(layout_.between_items);
    Break();
    Write(sequence.items[index]);
  }
  --level_;
  Break();
  Add("]");
}

std::string JsonWriter::KeyOf(const Value& key) {
  if (const std::string* const text = key.AsText()) return *text;
  if (const bool* const truth = key.AsTruth()) return *truth ? "true" : "false";
  if (key.IsNone()) return "null";
  if (!key.IsNumber()) rendering_.Fail(Sentence("JSON has no key of type ", key.type_name()));
  return PlainText(rendering_, key);
}

void JsonWriter::WriteMapping(const Mapping& mapping) {
  if (mapping.entries.empty()) return void(Add("{}"));
  std::vector<std::pair<std::string, const Value*>> entries;
  for (const auto& [key, value] : mapping.entries) entries.emplace_back(KeyOf(key), &value);
  if (layout_.sorted)
    std::stable_sort(entries.begin(), entries.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
  Add("{");
  ++level_;
  for (size_t index = 0; index < entries.size() && !rendering_.failed(); ++index) {
    if (index > 0) Add(layout_.between_items);
    Break();
    Add(QuotedForJson(entries[index].first, layout_.ascii));
    Add(layout_.after_key);
    Write(*entries[index].second);
  }
  --level_;
  Break();
  Add("}");
}

void JsonWriter::Write(const Value& value) {
  if (!rendering_.Spend(1)) return;
  if (const std::string* const text = value.AsText())
    return void(Add(QuotedForJson(*text, layout_.ascii)));
  if (const bool* const truth = value.AsTruth()) return void(Add(*truth ? "true" : "false"));
  if (value.IsNone()) return void(Add("null"));
  if (const double* const number = value.AsFloat()) return WriteNumber(*number);
  if (value.IsNumber()) return void(Add(PlainText(rendering_, value)));
  const Sequence* const sequence = value.AsSequence();
  if (sequence != nullptr && sequence->form <= SequenceForm::kTuple)
    return WriteSequence(*sequence);
  if (const Mapping* const mapping = value.AsMapping()) return WriteMapping(*mapping);
  rendering_.Fail(Sentence("a value of type ", value.type_name(), " has no JSON"));
}

}  // namespace

std::string JsonText(Rendering& rendering, const Value& value, const JsonLayout& layout) {
  JsonWriter writer(rendering, layout);
  writer.Write(value);
  return writer.Take();
}

}  // namespace serve::llm::jinja
