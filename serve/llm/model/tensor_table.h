// The tensors that a model of each architecture has: their names in both formats, and their shapes.
//
// GGUF's names are those that the rest of the code uses ("blk.0.attn_q.weight"). In directories
// names are those of the package transformers ("model.layers.0.self_attn.q_proj.weight").
// Thread safety: constants, and functions without state.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "serve/llm/model/architecture.h"

namespace serve::llm {

// A side of a shape, in terms of the model's sizes.
enum class Side {
  kNone,
  kWidth,
  kVocabulary,
  kContext,
  kQueries,
  kKeys,
  kQkv,
  kHead,
  kInner,
  kTurns
};

enum class TensorUse {
  kPlain,
  kRotated,  // its rows are the elements of heads that positions turn
  kProduct,  // a matrix that transformers keeps transposed in GPT-2 (its class Conv1D)
  kHead,     // makes logits; the embedding of tokens may stand for it
};

struct TensorRow {
  uint32_t architectures;
  bool in_each_layer;
  bool optional;
  std::string_view name;      // GGUF's; in a layer "blk.N." stands before it
  std::string_view rotating;  // transformers' for models that rotate; empty: it has none
  std::string_view gpt2;      // transformers' for GPT-2
  TensorUse use;
  Side first;  // the side whose elements lie side by side
  Side second;
};

std::span<const TensorRow> TensorRows();

uint64_t LengthOf(Side side, const ModelSizes& sizes);

// "blk.3.attn_q.weight"; `layer` counts where the row is in each layer.
std::string GgufNameOf(const TensorRow& row, uint64_t layer);
// "model.layers.3.self_attn.q_proj.weight"; empty: transformers has no such tensor. GPT-2's names
// come without "transformer.", which some files have and some have not.
std::string TransformersNameOf(const TensorRow& row, const Architecture& architecture,
                               uint64_t layer);
// Whether transformers, too, passes over the tensor: earlier versions wrote tables that are
// computed today.
bool IsPassedOver(std::string_view transformers_name, const Architecture& architecture);

}  // namespace serve::llm
