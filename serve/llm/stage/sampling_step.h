// The last part of a step: from logits to tokens and log probabilities. For StageStep alone.
//
// Thread safety: the device's thread alone. Ownership: queue and batch outlive the step.
#pragma once

#include <cstdint>
#include <vector>

#include "serve/engine/work_queue.h"
#include "serve/llm/stage/sampling_batch.h"
#include "serve/llm/stage/steps_in_flight.h"

namespace serve::llm {

class SamplingStep {
 public:
  // Of the device: `logits` are [samples, vocabulary], and the tokens go to `drawn` [samples].
  SamplingStep(engine::WorkQueue* queue, const SamplingBatch& batch, const float* logits,
               int32_t vocabulary, int32_t* drawn)
      : queue_(queue), batch_(batch), logits_(logits), vocabulary_(vocabulary), drawn_(drawn) {}

  // Submits all of it. The places are filled when the queue's work is done.
  void Run(const ResultPlaces& places);

 private:
  int32_t samples() const { return static_cast<int32_t>(batch_.how.size()); }
  const float* EditedLogits();
  void Draw(const float* logits);
  void TellLogprobs(const ResultPlaces& places);

  template <typename T>
  T* Allocate(size_t count) {
    return reinterpret_cast<T*>(queue_->Allocate(count * sizeof(T)));
  }
  template <typename T>
  const T* Place(const std::vector<T>& values) {
    T* const at = Allocate<T>(values.size());
    queue_->Place(reinterpret_cast<CUdeviceptr>(at), values.data(), values.size() * sizeof(T));
    return at;
  }
  template <typename T>
  void Fetch(const T* from, size_t count, T* to) {
    queue_->CopyOut(to, reinterpret_cast<CUdeviceptr>(from), count * sizeof(T));
  }

  engine::WorkQueue* const queue_;
  const SamplingBatch& batch_;
  const float* const logits_;
  const int32_t vocabulary_;
  int32_t* const drawn_;
};

}  // namespace serve::llm
