// One step of a stage: submits what the layers compute, in order. For Stage::Run alone.
//
// Thread safety: the device's thread alone. Ownership: stage, batch and places outlive the step.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "serve/engine/work_queue.h"
#include "serve/llm/stage/stage.h"
#include "serve/llm/stage/steps_in_flight.h"
#include "serve/llm/stage/workspace.h"

namespace serve::llm {

class StageStep {
 public:
  // Allocates the workspace, and copies the batch's arrays there.
  StageStep(const Stage* stage, const PackedBatch& batch, std::span<std::byte> staging);

  void CopyBlocks();
  // The rows begin with their tokens, or with what the stage before has computed, which must live
  // until the work is done, as `to` does.
  void Embed();
  void TakeHiddenStates(const float* from);
  void Layer(size_t number);  // of the stage
  void PassHiddenStatesOn(float* to);
  // The last norm, logits, and what is drawn of them. REQUIRES: rows are sampled.
  void Sample(const ResultPlaces& places);
  engine::WorkQueue* queue() { return &queue_; }

 private:
  const int32_t* PlaceIntegers(const std::vector<int32_t>& numbers);
  float* At(size_t offset) const;
  size_t HiddenBytes() const;
  // Adds what `added` holds to the stream, and norms it.
  void Norm(bool adds, const float* added_bias, const float* weight, const float* bias);
  void Attention(const LayerWeights& weights, size_t number);
  void FeedForward(const LayerWeights& weights);
  void Multiply(const float* weights, uint64_t out, uint64_t in, size_t x, size_t y, int32_t rows);
  // Rows that products read beyond those that kernels have written.
  void ZeroPadding(size_t offset, uint64_t width, int32_t rows);

  const Stage& stage_;
  const ModelSizes& sizes_;
  const PackedBatch& batch_;
  const Workspace space_;
  engine::WorkQueue queue_;
  CUdeviceptr base_ = 0;
  std::vector<int32_t> integers_;
  kernels::llm::StepRows rows_{};
  const int32_t* ids_ = nullptr;
  const int32_t* sampled_ = nullptr;
  const int32_t* copies_ = nullptr;
};

}  // namespace serve::llm
