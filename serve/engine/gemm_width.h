// The number of columns in an engine's calls of matrix products. With it a column's bits depend on
// the column alone, and on neither its place nor its neighbours.
//
// Libraries choose kernels by shape, and each adds in an order of its own: OpenBLAS gives a column
// other bits in narrow calls, cuBLAS wherever its heuristic changes. The engine tries its own
// shapes on its own device when it starts, and pads to the smallest width whose multiples agree.
// Where none does, calls of a fixed width do. Pure.
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"

namespace serve::engine {

struct GemmWidth {
  int32_t columns = 1;
  bool multiples = false;  // a call may have any multiple of `columns`; else it has just as many

  // The columns that `wanted` ones are padded to.
  int32_t Padded(int32_t wanted) const { return (wanted + columns - 1) / columns * columns; }
  // Columns of each call that computes `padded` ones.
  int32_t OfCall(int32_t padded) const { return multiples ? padded : columns; }
};

// Whether columns have the same bits in calls of `columns` columns as in calls of `width`, at
// whatever place of either. REQUIRES of calls: `columns` is a multiple of `width`.
using GemmProbe = std::function<absl::StatusOr<bool>(int32_t width, int32_t columns)>;

// `columns_max`: more are never computed at once. Fails where the probe does.
absl::StatusOr<GemmWidth> ChooseGemmWidth(int32_t columns_max, const GemmProbe& probe);

}  // namespace serve::engine
