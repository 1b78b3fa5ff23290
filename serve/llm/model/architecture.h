// The architectures that are served, one row each, and a model's sizes under its architecture.
//
// Thread safety: constants, and functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "serve/llm/format/gguf.h"

namespace serve::llm {

// Bits, so that a row of the table of tensors names several.
enum ArchitectureBit : uint32_t {
  kLlama = 1,  // Llama 2 and 3, SmolLM2, Mistral without a window
  kQwen2 = 2,
  kQwen3 = 4,
  kGpt2 = 8,
};

struct Architecture {
  std::string_view name;  // as GGUF says it: general.architecture, and the prefix of its keys
  ArchitectureBit bit;
  bool rotates;  // positions turn queries and keys; without it they are a table that is added
};

// Null: no architecture of this name is served.
const Architecture* FindArchitecture(std::string_view name);
// "llama, qwen2, ..."
std::string ServedArchitectures();

// Bounds of sizes: products of a model's sizes need not to overflow.
inline constexpr uint64_t kLayersMax = 1 << 10;
inline constexpr uint64_t kHeadsMax = 1 << 10;
inline constexpr uint64_t kWidthMax = 1 << 20;
inline constexpr uint64_t kVocabularyMax = 1 << 24;  // also of a context

// Where the matrix is that makes logits of hidden states.
enum class HeadTensor {
  kIfThere,  // the file's own where it has one, else the embedding of tokens
  kTied,     // the embedding of tokens
  kOwn,
};

struct ModelSizes {
  const Architecture* architecture = nullptr;
  uint64_t layers = 0;
  uint64_t width = 0;  // elements of a token's hidden state
  uint64_t feed_forward = 0;
  uint64_t heads = 0;
  uint64_t kv_heads = 0;  // heads of keys and values: each serves heads / kv_heads queries
  uint64_t head_width = 0;
  uint64_t vocabulary = 0;
  uint64_t context = 0;  // tokens
  double norm_epsilon = 0;
  double rope_base = 0;     // where positions rotate
  uint64_t rope_width = 0;  // elements of a head that rotate
  // How much slower each pair turns, where the sizes say so and no tensor does. Empty: all are 1.
  std::vector<float> rope_factors;
  HeadTensor head = HeadTensor::kIfThere;

  // Of one token, in all layers, with elements of so many bytes.
  uint64_t KvBytesOfToken(uint64_t element_bytes) const {
    return 2 * layers * kv_heads * head_width * element_bytes;
  }
};

// A failure's message is the end of a sentence that begins with the file's name. Each size is in
// the bounds that the sizes' product needs not to overflow.
absl::StatusOr<ModelSizes> SizesOf(const Gguf& gguf);

}  // namespace serve::llm
