#include "serve/llm/stage/layer_share.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "serve/llm/stage/layer_kind.h"

namespace serve::llm {
namespace {

// Of the matrices; vectors don't count beside them.
uint64_t LayerElements(const ModelSizes& sizes) {
  const uint64_t queries = sizes.heads * sizes.head_width;
  const uint64_t keys = sizes.kv_heads * sizes.head_width;
  const uint64_t feed = (LayerKindOf(*sizes.architecture).gated ? 3 : 2) * sizes.feed_forward;
  return sizes.width * (2 * queries + 2 * keys + feed);
}

uint64_t RoundedUp(uint64_t number, uint64_t divisor) { return (number + divisor - 1) / divisor; }

// How many layers the last stage has. REQUIRES: 2 <= stages <= sizes.layers.
uint64_t LayersOfLast(const ModelSizes& sizes, uint64_t stages) {
  const uint64_t layer = LayerElements(sizes);
  const uint64_t head = sizes.vocabulary * sizes.width;
  uint64_t best = 1;
  uint64_t least = UINT64_MAX;
  for (uint64_t last = 1; last + stages - 1 <= sizes.layers; ++last) {
    const uint64_t others = RoundedUp(sizes.layers - last, stages - 1) * layer;
    const uint64_t most = std::max(others, last * layer + head);
    if (most >= least) continue;
    least = most;
    best = last;
  }
  return best;
}

}  // namespace

absl::StatusOr<LayerShare> ShareOf(const ModelSizes& sizes, int32_t stage, int32_t stages) {
  const uint64_t count = static_cast<uint64_t>(stages);
  const uint64_t number = static_cast<uint64_t>(stage);
  if (count == 1) return LayerShare{0, sizes.layers, sizes.layers};
  if (sizes.layers < count)
    return absl::InvalidArgumentError(
        absl::StrCat("has ", sizes.layers, " layers, which --stages=", stages, " can't share"));
  const uint64_t last = LayersOfLast(sizes, count);
  const uint64_t before = sizes.layers - last;
  if (number == count - 1) return LayerShare{before, last, sizes.layers};
  // The first ones of the others have one more where the layers don't divide.
  const uint64_t others = count - 1;
  const uint64_t rest = before % others;
  const uint64_t first = number * (before / others) + std::min(number, rest);
  return LayerShare{first, before / others + (number < rest ? 1 : 0), sizes.layers};
}

}  // namespace serve::llm
