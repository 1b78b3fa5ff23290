#include "serve/llm/stage/layer_kind.h"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace serve::llm {
namespace {

using kernels::llm::NormKind;
using kernels::llm::RopePairs;

// Converters to GGUF permute Llama's weights, so that pairs are neighbours, and no other's.
constexpr LayerKind kLayerKinds[] = {
    {kLlama, NormKind::kRms, RopePairs::kNeighbours, true},
    {kQwen2, NormKind::kRms, RopePairs::kHalves, true},
    {kQwen3, NormKind::kRms, RopePairs::kHalves, true},
    {kGpt2, NormKind::kLayer, RopePairs::kHalves, false},
};

}  // namespace

const LayerKind& LayerKindOf(const Architecture& architecture) {
  const LayerKind* const found =
      std::find_if(std::begin(kLayerKinds), std::end(kLayerKinds),
                   [&](const LayerKind& kind) { return kind.architecture == architecture.bit; });
  assert(found != std::end(kLayerKinds));
  return *found;
}

}  // namespace serve::llm
