// The layers of a model on a device: computes one packed batch of rows at a time.
//
// Matrix products, norms and activations take all rows alike; attention alone knows requests. A
// request's result is the same, bit for bit, alone and in any batch, computed at once or in chunks:
// products are padded to a width whose multiples agree (serve/engine/gemm_width.h), and kernels add
// in an order that the batch does not change (kernels/llm/arguments.h).
//
// Weights and the pool of keys and values are persistent; what a step needs besides it allocates
// and frees within the step. Each step is one iteration to Laneway (include/laneway.h).
// Thread safety: the device's thread alone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/llm/arguments.h"
#include "serve/engine/device.h"
#include "serve/engine/gemm_width.h"
#include "serve/llm/format/gguf.h"
#include "serve/llm/model/architecture.h"
#include "serve/llm/stage/layer_kind.h"
#include "serve/llm/stage/packed_batch.h"
#include "serve/llm/stage/stage_weights.h"
#include "serve/llm/stage/step_result.h"

namespace serve::llm {

struct StageOptions {
  int32_t blocks = 256;       // of keys and values
  int32_t rows_max = 256;     // of a step
  int32_t requests_max = 64;  // of a step
  kernels::llm::KvType kv_type = kernels::llm::KvType::kFloat;
};

class Stage {
 public:
  // The kernels that a stage's device must have: for Device::Open.
  static std::vector<const char*> Modules();
  // The file's bytes are not needed afterwards. `device` outlives the stage. A failure's message
  // is a sentence, or, about the file, the end of one.
  static absl::StatusOr<std::unique_ptr<Stage>> Load(engine::Device* device, const Gguf& gguf,
                                                     const StageOptions& options);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // What a batch must keep to: for PackUntrusted.
  const BatchLimits& limits() const { return limits_; }
  const engine::GemmWidth& width() const { return width_; }

  // Computes the batch, and waits for it. REQUIRES: PackUntrusted made it with limits().
  absl::StatusOr<StepResult> Run(const PackedBatch& batch, bool with_logits);

 private:
  friend class StageStep;

  Stage(engine::Device* device, const ModelSizes& sizes, const StageOptions& options);
  absl::Status LoadTurns(const Gguf& gguf);
  absl::Status ChooseWidth();
  kernels::llm::KvPages PagesOf(size_t layer) const;
  size_t KvBlockBytes() const;
  size_t KvPoolBytes() const;  // of keys or values of one layer

  engine::Device* const device_;
  const ModelSizes sizes_;
  const LayerKind& kind_;
  const StageOptions options_;
  BatchLimits limits_;
  StageWeights weights_;
  engine::Memory kv_;     // [layers, keys and values, blocks, kBlockTokens, kv_heads, head_width]
  engine::Memory turns_;  // of positions, where they rotate
  engine::GemmWidth width_;
};

}  // namespace serve::llm
