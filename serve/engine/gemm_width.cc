#include "serve/engine/gemm_width.h"

namespace serve::engine {
namespace {

constexpr int32_t kWidthMax = 128;
constexpr int32_t kFixedWidth = 16;

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
  for (int32_t width = 1; width <= kWidthMax; width *= 2) {
    const absl::StatusOr<bool> agree = MultiplesAgree(width, columns_max, probe);
    if (!agree.ok()) return agree.status();
    if (*agree) return GemmWidth{width, true};
  }
  const absl::StatusOr<bool> fixed = probe(kFixedWidth, kFixedWidth);
  if (!fixed.ok()) return fixed.status();
  // A call of one column has neither neighbours nor another place.
  return GemmWidth{*fixed ? kFixedWidth : 1, false};
}

}  // namespace serve::engine
