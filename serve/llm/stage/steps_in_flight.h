// The steps that a device computes, and the pinned memory of the host through which they get their
// arrays and leave what they draw. While one step is computed the next one can be submitted (Orca,
// section 4.4).
//
// Thread safety: the device's thread alone. Ownership: the device outlives the steps.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "serve/engine/event.h"
#include "serve/engine/work_queue.h"
#include "serve/llm/stage/packed_batch.h"
#include "serve/llm/stage/step_result.h"

namespace serve::llm {

// Where a step's results go, on the host. Shapes are those of StepResult.
struct ResultPlaces {
  int32_t* tokens = nullptr;
  float* logprobs = nullptr;
  int32_t* ranks = nullptr;
  int32_t* top_tokens = nullptr;
  float* top_logprobs = nullptr;
  std::vector<float>* logits = nullptr;  // null: they are not asked for
};

class StepsInFlight {
 public:
  static constexpr size_t kMax = 2;

  // Of steps within these limits.
  static absl::StatusOr<std::unique_ptr<StepsInFlight>> Create(engine::Device* device,
                                                               const BatchLimits& limits);

  size_t size() const { return steps_.size(); }
  // Of the next step, until Finish() has told it. REQUIRES: size() < kMax.
  ResultPlaces Begin(const PackedBatch& batch, bool with_logits);
  // For the queue of the step that was begun last.
  std::span<std::byte> staging() const;
  // The next step's work has been submitted to the queue.
  absl::Status Submitted(engine::WorkQueue* queue);
  // Waits for the first step. REQUIRES: size() > 0.
  absl::StatusOr<StepResult> Finish();

 private:
  struct Step {
    size_t slot = 0;
    size_t samples = 0;
    int32_t top_logprobs = kNoLogprobs;
    std::vector<float> logits;
  };
  StepsInFlight(engine::HostMemory memory, size_t samples_max, size_t staging_bytes)
      : memory_(std::move(memory)), samples_max_(samples_max), staging_bytes_(staging_bytes) {}
  size_t ResultBytes() const;
  std::byte* SlotAt(size_t slot) const;  // results, then the staging memory
  ResultPlaces PlacesOf(size_t slot) const;

  const engine::HostMemory memory_;
  const size_t samples_max_;
  const size_t staging_bytes_;
  std::array<std::unique_ptr<engine::Event>, kMax> done_;  // by slot
  std::deque<Step> steps_;
  size_t next_slot_ = 0;
};

}  // namespace serve::llm
