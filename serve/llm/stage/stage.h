// Layers of a model on a device, all of them or a share: computes one packed batch of rows at a
// time. The first stage of a model begins with tokens, the others with the hidden states that the
// stage before has computed; the last one draws tokens.
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
#include "serve/llm/model/architecture.h"
#include "serve/llm/model/model.h"
#include "serve/llm/stage/layer_kind.h"
#include "serve/llm/stage/layer_share.h"
#include "serve/llm/stage/packed_batch.h"
#include "serve/llm/stage/stage_weights.h"
#include "serve/llm/stage/step_result.h"
#include "serve/llm/stage/steps_in_flight.h"

namespace serve::llm {

struct StageOptions {
  int32_t blocks = 256;       // of keys and values
  int32_t rows_max = 256;     // of a step
  int32_t requests_max = 64;  // of a step
  kernels::llm::KvType kv_type = kernels::llm::KvType::kFloat;
  int32_t stage = 0;  // which of `stages`
  int32_t stages = 1;
};

// A step's hidden states on the host, [rows, width] each.
struct HiddenStates {
  const float* in = nullptr;  // for all stages but the first
  float* out = nullptr;       // of all stages but the last
};

class Stage {
 public:
  // The kernels that a stage's device must have: for Device::Open.
  static std::vector<const char*> Modules();
  // The model is not needed afterwards; of its text nothing is. `device` outlives the stage. A
  // failure's message is a sentence, or, about the model, the end of one.
  static absl::StatusOr<std::unique_ptr<Stage>> Load(engine::Device* device, const Model& model,
                                                     const StageOptions& options,
                                                     const LoadProgress& progress = {});
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // The bounds of the next batch: for PackUntrusted.
  const BatchLimits& limits() const { return limits_; }
  const LayerShare& share() const { return share_; }

  // The last stage has found a width that agrees for its own matrices, which have all shapes of the
  // model. Other stages take it over, or a model's bits would depend on its stages.
  const engine::GemmWidth& width() const { return width_; }
  void TakeWidth(const engine::GemmWidth& width) { width_ = width; }

  // Submits the batch, which may go then. REQUIRES: PackUntrusted made it with limits(); the width
  // is known; in_flight() < StepsInFlight::kMax.
  absl::Status Submit(const PackedBatch& batch, const HiddenStates& hidden, bool with_logits);
  size_t in_flight() const { return steps_->size(); }
  // Waits for the batch that was submitted first. REQUIRES: in_flight() > 0.
  absl::StatusOr<StepResult> Finish() { return steps_->Finish(); }

 private:
  friend class StageStep;

  Stage(engine::Device* device, const ModelSizes& sizes, const LayerShare& share,
        const StageOptions& options);
  absl::Status LoadTurns(const ModelTensors& tensors);
  absl::Status ChooseWidth();
  kernels::llm::KvPages PagesOf(size_t layer) const;  // of the share
  size_t KvBlockBytes() const;
  size_t KvPoolBytes() const;  // of keys or values of one layer
  int32_t* drawn() const { return reinterpret_cast<int32_t*>(drawn_.address()); }

  engine::Device* const device_;
  const ModelSizes sizes_;
  const LayerShare share_;
  const LayerKind& kind_;
  const StageOptions options_;
  BatchLimits limits_;
  StageWeights weights_;
  // [layers of the share, keys and values, blocks, kBlockTokens, kv_heads, head_width]
  engine::Memory kv_;
  engine::Memory turns_;  // of positions, where they rotate
  engine::Memory drawn_;  // the tokens of the last step, which the next one may follow
  std::unique_ptr<StepsInFlight> steps_;
  engine::GemmWidth width_;
};

}  // namespace serve::llm
