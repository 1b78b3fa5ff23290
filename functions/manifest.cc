#include "functions/manifest.h"

#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ipc/calls/limits.h"

namespace functions {
namespace {

using Json = nlohmann::json;

constexpr size_t kManifestBytesMax = 1u << 20;
constexpr size_t kNameBytesMax = 64;

constexpr std::array<ElementTypeFacts, kElementTypes> kTypes = {{
    {"f16", "f2", 2},
    {"f32", "f4", 4},
    {"f64", "f8", 8},
    {"i8", "i1", 1},
    {"i16", "i2", 2},
    {"i32", "i4", 4},
    {"i64", "i8", 8},
    {"u8", "u1", 1},
    {"u16", "u2", 2},
    {"u32", "u4", 4},
    {"u64", "u8", 8},
    {"bool", "b1", 1},
}};

// Most programs that are recorded compute with floats. A guess that is wrong costs an edit.
TensorType Guess(std::string name, uint64_t bytes, bool scalar) {
  TensorType tensor;
  tensor.name = std::move(name);
  if (scalar) {
    tensor.type = bytes == 8 ? ElementType::kI64 : ElementType::kI32;
    return tensor;
  }
  tensor.type = bytes % 4 == 0 ? ElementType::kF32 : ElementType::kU8;
  tensor.shape = {bytes / FactsOf(tensor.type).bytes};
  return tensor;
}

Json JsonOfTensors(const std::vector<TensorType>& tensors) {
  Json list = Json::array();
  for (const TensorType& tensor : tensors) {
    list.push_back({{"name", tensor.name},
                    {"type", std::string(FactsOf(tensor.type).name)},
                    {"shape", tensor.shape}});
  }
  return list;
}

// Names stand on command lines before a '=', and in Python before one, too.
bool IsName(const std::string& name) {
  if (name.empty() || name.size() > kNameBytesMax) return false;
  for (const char letter : name) {
    const bool fine = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                      (letter >= '0' && letter <= '9') || letter == '_' || letter == '-' ||
                      letter == '.';
    if (!fine) return false;
  }
  return true;
}

// Each failure names its tensor: a manifest is edited by hand.
bool ReadTensor(const Json& entry, TensorType* tensor, std::string* why) {
  if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string() ||
      !IsName(entry["name"].get<std::string>())) {
    *why = "has an input or output without a name of letters, digits, '_', '-' and '.'";
    return false;
  }
  tensor->name = entry["name"].get<std::string>();
  // A type must be given: the same bytes may be floats or integers.
  const std::optional<ElementType> type = entry.contains("type") && entry["type"].is_string()
                                              ? ElementTypeNamed(entry["type"].get<std::string>())
                                              : std::nullopt;
  if (!type.has_value()) {
    *why = absl::StrCat("gives ", tensor->name,
                        " no type; use f16, f32, f64, i8, i16, i32, i64, "
                        "u8, u16, u32, u64 or bool");
    return false;
  }
  tensor->type = *type;
  const Json shape = entry.value("shape", Json());
  bool fine = shape.is_array() && shape.size() <= kTensorRankMax;
  for (size_t i = 0; fine && i < shape.size(); ++i) {
    fine = shape[i].is_number_unsigned();
    if (fine) tensor->shape.push_back(shape[i].get<uint64_t>());
  }
  if (!fine) *why = absl::StrCat("gives ", tensor->name, " no shape; use a list such as [1, 64]");
  return fine;
}

bool ReadTensors(const Json& json, const char* key, std::vector<TensorType>* tensors,
                 std::string* why) {
  if (!json.is_object() || !json.contains(key) || !json[key].is_array() ||
      json[key].size() > ipc::limits::kFunctionPortsMax) {
    *why = absl::StrCat("has no list of ", key, "; write one");
    return false;
  }
  // Inputs and outputs are apart: an output may have the name of an input.
  std::set<std::string> names;
  for (const Json& entry : json[key]) {
    TensorType tensor;
    if (!ReadTensor(entry, &tensor, why)) return false;
    if (!names.insert(tensor.name).second) {
      *why = absl::StrCat("has two ", key, " ", tensor.name, "; rename one");
      return false;
    }
    tensors->push_back(std::move(tensor));
  }
  return true;
}

// By order, not by name: names are what people change.
bool SizesFit(const std::vector<TensorType>& tensors, const std::vector<uint64_t>& bytes,
              const char* what, std::string* why) {
  if (tensors.size() != bytes.size()) {
    *why =
        absl::StrCat("lists ", tensors.size(), " ", what, ", but the function has ", bytes.size());
    return false;
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (BytesOf(tensors[i]) == bytes[i]) continue;
    *why = absl::StrCat("says that ", tensors[i].name, " is ", TextOf(tensors[i]), ", but it has ",
                        bytes[i], " bytes");
    return false;
  }
  return true;
}

}  // namespace

const ElementTypeFacts& FactsOf(ElementType type) { return kTypes[static_cast<size_t>(type)]; }

std::optional<ElementType> ElementTypeNamed(std::string_view name) {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<ElementType>(i);
  }
  return std::nullopt;
}

std::optional<ElementType> ElementTypeOfNumpy(std::string_view name) {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].numpy == name) return static_cast<ElementType>(i);
  }
  return std::nullopt;
}

std::optional<uint64_t> BytesOf(const TensorType& tensor) {
  uint64_t bytes = FactsOf(tensor.type).bytes;
  for (const uint64_t side : tensor.shape) {
    if (side > ipc::limits::kFunctionPortBytesMax) return std::nullopt;
    bytes *= side;  // no overflow: both factors are bounded
    if (bytes > ipc::limits::kFunctionPortBytesMax) return std::nullopt;
  }
  return bytes;
}

std::string TextOf(const TensorType& tensor) {
  return absl::StrCat(std::string(FactsOf(tensor.type).name), " [",
                      absl::StrJoin(tensor.shape, ", "), "]");
}

Manifest FirstManifest(const Function& function) {
  // A recording has no names: calls of CUDA carry addresses alone.
  Manifest manifest;
  for (const Port& port : function.inputs)
    manifest.inputs.push_back(
        Guess(absl::StrCat("input", manifest.inputs.size()), port.bytes, false));
  for (size_t i = 0; i < function.scalars.size(); ++i)
    manifest.inputs.push_back(Guess(absl::StrCat("scalar", i), function.scalars[i].bytes, true));
  for (const Port& port : function.outputs)
    manifest.outputs.push_back(
        Guess(absl::StrCat("output", manifest.outputs.size()), port.bytes, false));
  return manifest;
}

// The order of keys is kept, so that a person reads inputs before outputs.
std::string JsonOf(const Manifest& manifest) {
  nlohmann::ordered_json json;
  json["inputs"] = JsonOfTensors(manifest.inputs);
  json["outputs"] = JsonOfTensors(manifest.outputs);
  return json.dump(2) + "\n";
}

bool ParseManifestUntrusted(std::string_view text, Manifest* manifest, std::string* why) {
  // Before the parser sees it: the parser's memory grows with the text.
  if (text.size() > kManifestBytesMax) {
    *why = "is too long; shorten it";
    return false;
  }
  // Without exceptions, a text that is no JSON is a value that says so.
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    *why = "is no JSON; correct it";
    return false;
  }
  Manifest read;
  if (!ReadTensors(json, "inputs", &read.inputs, why) ||
      !ReadTensors(json, "outputs", &read.outputs, why))
    return false;
  *manifest = std::move(read);
  return true;
}

bool Fits(const Manifest& manifest, const Function& function, std::string* why) {
  std::vector<uint64_t> in, out;
  for (const Port& port : function.inputs) in.push_back(port.bytes);
  for (const Scalar& scalar : function.scalars) in.push_back(scalar.bytes);
  for (const Port& port : function.outputs) out.push_back(port.bytes);
  return SizesFit(manifest.inputs, in, "inputs", why) &&
         SizesFit(manifest.outputs, out, "outputs", why);
}

}  // namespace functions
