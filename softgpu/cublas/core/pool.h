// A few threads that share the work of one BLAS call.
//
// Which thread runs which part is open; the parts themselves are chosen by the caller from the
// problem's shape alone, so results don't depend on how many threads there are or how busy they
// are. Thread safety: any thread may call, also from inside a part; the caller works too, so a call
// makes progress even when every pool thread is busy. Pool threads take no signals but faults,
// start at first use and live until the process ends.
#pragma once

#include <cstdint>
#include <functional>

#include "softgpu/cublas/core/visibility.h"

namespace softgpu::cublas {

// Runs part(0) ... part(parts - 1), in any order, and returns when all are done. Parts don't throw.
SOFTGPU_CUBLAS_CORE void ParallelFor(int64_t parts, const std::function<void(int64_t)>& part);

}  // namespace softgpu::cublas
