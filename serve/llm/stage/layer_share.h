// Which layers of a model a stage computes. Stages follow each other, and each is a process with a
// device (Orca, section 4.1: inter-layer parallelism). Pure.
// Thread safety: functions without state.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "serve/llm/model/architecture.h"

namespace serve::llm {

constexpr int32_t kStagesMax = 4;

struct LayerShare {
  uint64_t first = 0;
  uint64_t count = 0;
  uint64_t layers = 0;  // of the model

  bool is_first() const { return first == 0; }              // has the embedding
  bool is_last() const { return first + count == layers; }  // has the last norm and the logits
};

// The share of stage `stage` (from 0) of `stages`. The slowest stage decides how fast steps follow
// each other, so its weights are as few as possible: a step of decoding reads each weight once.
// The last stage has the logits' matrix besides its layers. Fails with the end of a sentence where
// there are fewer layers than stages. REQUIRES: 0 <= stage < stages.
absl::StatusOr<LayerShare> ShareOf(const ModelSizes& sizes, int32_t stage, int32_t stages);

}  // namespace serve::llm
