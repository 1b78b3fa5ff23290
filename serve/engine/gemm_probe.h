// Tries on the device whether columns of matrix products keep their bits (gemm_width.h).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "serve/engine/device.h"
#include "serve/engine/gemm_width.h"

namespace serve::engine {

// A matrix of the model, with its real weights, and the most columns that it is multiplied with.
struct ProbedMatrix {
  const float* weights = nullptr;
  int32_t out = 0;
  int32_t in = 0;
  int32_t columns_max = 0;
};

// The width for all of these.
absl::StatusOr<GemmWidth> ProbeGemmWidth(Device* device, const std::vector<ProbedMatrix>& matrices);

}  // namespace serve::engine
