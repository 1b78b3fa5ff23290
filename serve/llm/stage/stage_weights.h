// A stage's share of a model's weights on the device, as floats, joined where one product computes
// several tensors' results: queries, keys and values; gate and up.
//
// Thread safety: none. Ownership: pointers are of the device, into `memory`.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "serve/engine/device.h"
#include "serve/llm/model/model_tensors.h"
#include "serve/llm/stage/layer_share.h"

namespace serve::llm {

// Null: the architecture has no such tensor.
struct LayerWeights {
  const float* attention_norm = nullptr;
  const float* attention_norm_bias = nullptr;
  const float* qkv = nullptr;  // [queries + keys + values, width]
  const float* qkv_bias = nullptr;
  const float* q_norm = nullptr;
  const float* k_norm = nullptr;
  const float* attention_out = nullptr;  // [width, queries]
  const float* attention_out_bias = nullptr;
  const float* feed_norm = nullptr;
  const float* feed_norm_bias = nullptr;
  const float* up = nullptr;  // [gate and up, width], or [feed_forward, width]
  const float* up_bias = nullptr;
  const float* down = nullptr;  // [width, feed_forward]
  const float* down_bias = nullptr;
};

struct StageWeights {
  engine::Memory memory;
  std::vector<LayerWeights> layers;  // of the share
  // Of the first stage.
  const float* tokens = nullptr;     // [vocabulary, width]
  const float* positions = nullptr;  // [context, width]
  // Of the last stage.
  const float* output_norm = nullptr;
  const float* output_norm_bias = nullptr;
  const float* head = nullptr;  // [vocabulary, width]
};

// Is told how many bytes of how many are on the device, now and then, and when all of them are.
using LoadProgress = std::function<void(uint64_t done, uint64_t of)>;

// REQUIRES: tensors.faults() is empty.
absl::StatusOr<StageWeights> LoadWeights(engine::Device* device, const ModelTensors& tensors,
                                         const LayerShare& share, const LoadProgress& progress);
// What LoadWeights allocates.
uint64_t WeightBytes(const ModelTensors& tensors, const LayerShare& share);

}  // namespace serve::llm
