#include "serve/engine/gemm_width.h"

namespace serve::engine {
namespace {

// Libraries compute columns in tiles of 4, 8, 12, 16 or more.
constexpr int32_t kWidths[] = {1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128};
// From the widest: a call reads all weights.
constexpr int32_t kFixedWidths[] = {16, 12, 8, 4, 2};

// Every call that could be made is tried: a library may change its code at any number of columns.
absl::StatusOr<bool> MultiplesAgree(int32_t width, int32_t columns_max, const GemmProbe& probe) {
  const int32_t widest = GemmWidth{width, true}.Padded(columns_max);
  for (int32_t columns = width; columns <= widest; columns += width) {
    const absl::StatusOr<bool> agree = probe(width, columns);
    if (!agree.ok() || !*agree) return agree;
  }
  return true;
}

}  // namespace

absl::StatusOr<GemmWidth> ChooseGemmWidth(int32_t columns_max, const GemmProbe& probe) {
  for (const int32_t width : kWidths) {
    const absl::StatusOr<bool> agree = MultiplesAgree(width, columns_max, probe);
    if (!agree.ok()) return agree.status();
    if (*agree) return GemmWidth{width, true};
  }
  for (const int32_t width : kFixedWidths) {
    const absl::StatusOr<bool> agree = probe(width, width);
    if (!agree.ok()) return agree.status();
    if (*agree) return GemmWidth{width, false};
  }
  // A call of one column has neither neighbours nor another place.
  return GemmWidth{1, false};
}

}  // namespace serve::engine
