// Where a row of a step belongs: for the kernels and their reference alike.
#pragma once

#include "kernels/llm/arguments.h"

#ifdef __CUDACC__
#define KERNELS_BOTH __host__ __device__
#else
#define KERNELS_BOTH
#endif

namespace kernels::llm {

struct Place {
  int32_t request;
  int32_t position;
};

// REQUIRES: 0 <= row < step.rows.
KERNELS_BOTH inline Place PlaceOf(const StepRows& step, int32_t row) {
  int32_t low = 0;
  int32_t high = step.requests;  // start[low] <= row < start[high]
  while (high - low > 1) {
    const int32_t middle = (low + high) / 2;
    if (step.start[middle] <= row) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return {low, step.length[low] - step.start[low + 1] + row};
}

// The number of a token's place among all blocks' places.
KERNELS_BOTH inline int64_t SlotOf(const StepRows& step, int32_t request, int32_t position) {
  const int32_t* const table = step.table + static_cast<int64_t>(request) * step.table_width;
  return static_cast<int64_t>(table[position / kBlockTokens]) * kBlockTokens +
         position % kBlockTokens;
}

}  // namespace kernels::llm
