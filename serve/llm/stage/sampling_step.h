// The last part of a step: from logits to tokens and log probabilities. For StageStep alone.
//
// Thread safety: the device's thread alone. Ownership: queue, batch and result outlive the step.
#pragma once

#include <cstdint>
#include <vector>

#include "serve/engine/work_queue.h"
#include "serve/llm/stage/sampling_batch.h"
#include "serve/llm/stage/step_result.h"

namespace serve::llm {

class SamplingStep {
 public:
  // `logits` are of the device, [samples, vocabulary].
  SamplingStep(engine::WorkQueue* queue, const SamplingBatch& batch, const float* logits,
               int32_t vocabulary)
      : queue_(queue), batch_(batch), logits_(logits), vocabulary_(vocabulary) {}

  // Submits all of it. `result` is filled when the queue is finished.
  void Run(StepResult* result);

 private:
  int32_t samples() const { return static_cast<int32_t>(batch_.how.size()); }
  const float* EditedLogits();
  // Token numbers on the device.
  const int32_t* Draw(const float* logits);
  void TellLogprobs(const int32_t* tokens, StepResult* result);

  template <typename T>
  T* Allocate(size_t count) {
    return reinterpret_cast<T*>(queue_->Allocate(count * sizeof(T)));
  }
  template <typename T>
  const T* Place(const std::vector<T>& values) {
    T* const at = Allocate<T>(values.size());
    queue_->CopyIn(reinterpret_cast<CUdeviceptr>(at), values.data(), values.size() * sizeof(T));
    return at;
  }
  template <typename T>
  void Fetch(const T* from, size_t count, std::vector<T>* to) {
    to->resize(count);
    queue_->CopyOut(to->data(), reinterpret_cast<CUdeviceptr>(from), count * sizeof(T));
  }

  engine::WorkQueue* const queue_;
  const SamplingBatch& batch_;
  const float* const logits_;
  const int32_t vocabulary_;
};

}  // namespace serve::llm
