// GGUF files, versions 2 and 3, little-endian: a model's metadata (sizes, tokenizer) and its
// tensors in a single file.
//
//     "GGUF", version, tensors, keys     4 bytes, u32, u64, u64
//     a key: name, type, value           texts are a u64 length and bytes without an end
//     a tensor: name, rank, sides, type, offset    rank u32, sides u64, type u32, offset u64
//     padding to the alignment           general.alignment, 32 when the file does not say
//     the tensors' bytes                 each at its offset from here
//
// The decoder is the one door for these files, which come from anywhere. After it each value lies
// in the file whole, and each tensor has a known type, rows of whole blocks, and bytes that are its
// alone. A model is made of the tensors elsewhere (serve/llm/model/).
//
// A Gguf looks into the bytes that it was decoded from and copies none of them: these must outlive
// it. Thread safety: const methods from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "serve/llm/format/tensor.h"

namespace serve::llm {

inline constexpr uint64_t kGgufTensorsMax = 1 << 16;
inline constexpr uint64_t kGgufKeysMax = 1 << 16;
inline constexpr uint64_t kGgufKeyBytesMax = (1 << 16) - 1;  // by the format, as the next two
inline constexpr uint64_t kGgufTensorNameBytesMax = 64;
inline constexpr uint32_t kGgufRankMax = 4;
inline constexpr uint64_t kGgufAlignmentMin = 8;
inline constexpr uint64_t kGgufAlignmentMax = 1 << 16;

enum class GgufType : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kText,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

// The elements as they lie in the file.
struct GgufArray {
  GgufType type = GgufType::kUint8;  // never kArray
  uint64_t count = 0;
  std::span<const std::byte> bytes;
};

// Numbers have the widest type of their kind.
using GgufValue = std::variant<uint64_t, int64_t, double, bool, std::string_view, GgufArray>;

class Gguf {
 public:
  uint32_t version() const { return version_; }
  const TensorSet& tensors() const { return tensors_; }

  // Nothing: the file has no such key, or a value of another kind, or out of range. `Unsigned`
  // takes numbers of signed types that are not negative. `Number` takes any.
  bool Has(std::string_view key) const { return Find(key) != nullptr; }
  std::optional<uint64_t> Unsigned(std::string_view key) const;
  std::optional<double> Number(std::string_view key) const;
  std::optional<bool> Bool(std::string_view key) const;
  std::optional<std::string_view> Text(std::string_view key) const;
  std::optional<std::vector<std::string_view>> Texts(std::string_view key) const;
  std::optional<std::vector<int64_t>> Integers(std::string_view key) const;
  std::optional<std::vector<double>> Numbers(std::string_view key) const;  // an array of floats

 private:
  friend class GgufDecoder;
  const GgufValue* Find(std::string_view key) const;

  uint32_t version_ = 0;
  absl::flat_hash_map<std::string_view, GgufValue> values_;
  TensorSet tensors_;
};

// A failure's message is the end of a sentence that begins with the file's name ("is cut short in
// its metadata; fetch it again").
absl::StatusOr<Gguf> DecodeGgufUntrusted(std::span<const std::byte> file);

}  // namespace serve::llm
