// What people and clients see of a recorded function: its inputs and outputs by name, with element
// types and shapes, as a JSON file beside the function's.
//
//     {"inputs": [{"name": "input0", "type": "f32", "shape": [64]}],
//      "outputs": [{"name": "output0", "type": "f32", "shape": [10]}]}
//
// A recording knows sizes in bytes alone, so the first manifest guesses. It may be edited: names,
// types and shapes, as long as the sizes are those of the function, in the same order.
//
// Thread safety: functions without state; values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "functions/function.h"

namespace functions {

enum class ElementType : uint8_t {
  kF16,
  kF32,
  kF64,
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kU16,
  kU32,
  kU64,
  kBool
};
inline constexpr size_t kElementTypes = 12;
inline constexpr size_t kTensorRankMax = 16;

struct ElementTypeFacts {
  std::string_view name;   // in manifests
  std::string_view numpy;  // without the byte order
  size_t bytes = 0;
};
const ElementTypeFacts& FactsOf(ElementType type);
std::optional<ElementType> ElementTypeNamed(std::string_view name);
std::optional<ElementType> ElementTypeOfNumpy(std::string_view name);

struct TensorType {
  std::string name;
  ElementType type = ElementType::kU8;
  std::vector<uint64_t> shape;
  bool operator==(const TensorType&) const = default;
};
// Nothing: more bytes than any input may have.
std::optional<uint64_t> BytesOf(const TensorType& tensor);
// "f32 [1, 64]"
std::string TextOf(const TensorType& tensor);

struct Manifest {
  std::vector<TensorType> inputs, outputs;  // of scalars after all other inputs
  bool operator==(const Manifest&) const = default;
};

Manifest FirstManifest(const Function& function);
std::string JsonOf(const Manifest& manifest);
// False: `why` is a sentence's end, such as "is no JSON; correct it".
bool ParseManifestUntrusted(std::string_view json, Manifest* manifest, std::string* why);
// Whether numbers and sizes are the function's; the same `why`.
bool Fits(const Manifest& manifest, const Function& function, std::string* why);

}  // namespace functions
