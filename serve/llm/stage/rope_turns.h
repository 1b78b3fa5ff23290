// Cosines and sines by which positions turn pairs of elements: computed in double, once, so that
// they are the same on every device.
//
// Thread safety: functions without state.
#pragma once

#include <span>
#include <vector>

#include "serve/llm/model/architecture.h"

namespace serve::llm {

// [positions, rope_width / 2, 2]. Pair i turns by position / (base^(2i / rope_width) * factors[i]);
// no factors: all are 1 (Llama 3 stretches slow pairs by its tensor rope_freqs).
// REQUIRES: factors are none, or rope_width / 2.
std::vector<float> RopeTurns(const ModelSizes& sizes, int32_t positions,
                             std::span<const float> factors);

}  // namespace serve::llm
