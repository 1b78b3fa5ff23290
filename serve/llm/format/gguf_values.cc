// What a decoded file says of one key.
#include <cassert>

#include "serve/llm/format/cursor.h"
#include "serve/llm/format/gguf.h"

namespace serve::llm {
namespace {

// REQUIRES: an array of whole numbers.
int64_t NextInteger(GgufType type, Cursor* in) {
  switch (type) {
    case GgufType::kUint8:
      return in->Number<uint8_t>();
    case GgufType::kInt8:
      return in->Number<int8_t>();
    case GgufType::kUint16:
      return in->Number<uint16_t>();
    case GgufType::kInt16:
      return in->Number<int16_t>();
    case GgufType::kUint32:
      return in->Number<uint32_t>();
    case GgufType::kInt32:
      return in->Number<int32_t>();
    default:
      assert(type == GgufType::kInt64);
      return in->Number<int64_t>();
  }
}

bool IsOfIntegers(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kInt8:
    case GgufType::kUint16:
    case GgufType::kInt16:
    case GgufType::kUint32:
    case GgufType::kInt32:
    case GgufType::kInt64:
      return true;
    default:
      return false;
  }
}

}  // namespace

const GgufValue* Gguf::Find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

std::optional<uint64_t> Gguf::Unsigned(std::string_view key) const {
  const GgufValue* const value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (const uint64_t* const number = std::get_if<uint64_t>(value)) return *number;
  const int64_t* const number = std::get_if<int64_t>(value);
  if (number == nullptr || *number < 0) return std::nullopt;
  return static_cast<uint64_t>(*number);
}

std::optional<double> Gguf::Number(std::string_view key) const {
  const GgufValue* const value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (const uint64_t* const number = std::get_if<uint64_t>(value))
    return static_cast<double>(*number);
  if (const int64_t* const number = std::get_if<int64_t>(value))
    return static_cast<double>(*number);
  const double* const number = std::get_if<double>(value);
  return number == nullptr ? std::nullopt : std::optional<double>(*number);
}

std::optional<bool> Gguf::Bool(std::string_view key) const {
  const GgufValue* const value = Find(key);
  const bool* const truth = value == nullptr ? nullptr : std::get_if<bool>(value);
  return truth == nullptr ? std::nullopt : std::optional<bool>(*truth);
}

std::optional<std::string_view> Gguf::Text(std::string_view key) const {
  const GgufValue* const value = Find(key);
  const std::string_view* const text =
      value == nullptr ? nullptr : std::get_if<std::string_view>(value);
  return text == nullptr ? std::nullopt : std::optional<std::string_view>(*text);
}

std::optional<std::vector<std::string_view>> Gguf::Texts(std::string_view key) const {
  const GgufValue* const value = Find(key);
  const GgufArray* const array = value == nullptr ? nullptr : std::get_if<GgufArray>(value);
  if (array == nullptr || array->type != GgufType::kText) return std::nullopt;
  // The decoder has passed each text, so `count` texts are there.
  std::vector<std::string_view> texts(array->count);
  Cursor in(array->bytes);
  for (std::string_view& text : texts) text = in.Text();
  return texts;
}

std::optional<std::vector<int64_t>> Gguf::Integers(std::string_view key) const {
  const GgufValue* const value = Find(key);
  const GgufArray* const array = value == nullptr ? nullptr : std::get_if<GgufArray>(value);
  if (array == nullptr || !IsOfIntegers(array->type)) return std::nullopt;
  std::vector<int64_t> numbers(array->count);
  Cursor in(array->bytes);
  for (int64_t& number : numbers) number = NextInteger(array->type, &in);
  return numbers;
}

std::optional<std::vector<double>> Gguf::Numbers(std::string_view key) const {
  const GgufValue* const value = Find(key);
  const GgufArray* const array = value == nullptr ? nullptr : std::get_if<GgufArray>(value);
  const bool single = array != nullptr && array->type == GgufType::kFloat32;
  if (array == nullptr || (!single && array->type != GgufType::kFloat64)) return std::nullopt;
  std::vector<double> numbers(array->count);
  Cursor in(array->bytes);
  for (double& number : numbers) number = single ? double{in.Number<float>()} : in.Number<double>();
  return numbers;
}

}  // namespace serve::llm
