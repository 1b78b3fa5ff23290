// The arithmetic of sampling that decides which token is drawn: for the kernels and their reference
// alike, since one unit more or less is another token.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/llm/arguments.h"
#include "kernels/llm/step_place.h"

namespace kernels::llm {

// The least weight that min_p lets count.
KERNELS_BOTH inline uint32_t LeastWeight(float min_p) {
  const float least = ceilf(min_p * static_cast<float>(kWeightMax));
  if (!(least > 1)) return 1;
  return least >= static_cast<float>(kWeightMax) ? kWeightMax : static_cast<uint32_t>(least);
}

// The sum of weights that top_p asks for, of `total`.
KERNELS_BOTH inline uint64_t WantedSum(float top_p, uint64_t total) {
  const double wanted = ceil(static_cast<double>(top_p) * static_cast<double>(total));
  if (!(wanted > 1)) return 1;
  return wanted >= static_cast<double>(total) ? total : static_cast<uint64_t>(wanted);
}

// A whole number below `total`, all alike likely: the upper half of a product of 128 bits.
KERNELS_BOTH inline uint64_t Below(uint64_t total, uint64_t random) {
#ifdef __CUDA_ARCH__
  return __umul64hi(total, random);
#else
  return static_cast<uint64_t>(static_cast<unsigned __int128>(total) * random >> 64);
#endif
}

KERNELS_BOTH inline float Edited(float logit, const TokenEdit& edit, const Penalties& penalties) {
  if (edit.appeared != 0) {
    logit = logit > 0 ? logit / penalties.repetition : logit * penalties.repetition;
  }
  if (edit.generated > 0) {
    logit -= penalties.frequency * static_cast<float>(edit.generated);
    logit -= penalties.presence;
  }
  return logit + edit.bias;
}

}  // namespace kernels::llm
