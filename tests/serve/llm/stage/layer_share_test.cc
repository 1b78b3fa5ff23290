// How a model's layers are shared among stages, against all ways to share them.
#include "serve/llm/stage/layer_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace serve::llm {
namespace {

// A layer has 12 x width^2 elements, the matrix of logits vocabulary x width.
ModelSizes Sizes(uint64_t layers, uint64_t vocabulary) {
  ModelSizes sizes;
  sizes.architecture = FindArchitecture("gpt2");
  sizes.layers = layers;
  sizes.width = 8;
  sizes.feed_forward = 32;
  sizes.heads = sizes.kv_heads = 2;
  sizes.head_width = 4;
  sizes.vocabulary = vocabulary;
  return sizes;
}
constexpr uint64_t kLayer = 12 * 64;

uint64_t SlowestOf(const std::vector<uint64_t>& counts, uint64_t vocabulary) {
  return std::max(*std::max_element(counts.begin(), counts.end() - 1) * kLayer,
                  counts.back() * kLayer + vocabulary * 8);
}

// The least that the slowest stage has, of all ways to share `layers` among the stages from `at`
// on.
uint64_t LeastSlowest(std::vector<uint64_t>* counts, size_t at, uint64_t layers,
                      uint64_t vocabulary) {
  if (at + 1 == counts->size()) {
    (*counts)[at] = layers;
    return SlowestOf(*counts, vocabulary);
  }
  uint64_t least = UINT64_MAX;
  for (uint64_t count = 1; count + (counts->size() - at - 1) <= layers; ++count) {
    (*counts)[at] = count;
    least = std::min(least, LeastSlowest(counts, at + 1, layers - count, vocabulary));
  }
  return least;
}

TEST(LayerShareTest, TheSlowestStageHasAsLittleAsPossible) {
  for (int32_t stages = 2; stages <= kStagesMax; ++stages) {
    for (uint64_t layers = static_cast<uint64_t>(stages); layers <= 12; ++layers) {
      for (const uint64_t vocabulary : {1, 50, 200, 500, 3000}) {
        const ModelSizes sizes = Sizes(layers, vocabulary);
        std::vector<uint64_t> counts;
        uint64_t next = 0;
        for (int32_t stage = 0; stage < stages; ++stage) {
          const LayerShare share = *ShareOf(sizes, stage, stages);
          EXPECT_EQ(share.first, next);
          EXPECT_GT(share.count, 0u);
          EXPECT_EQ(share.is_first(), stage == 0);
          EXPECT_EQ(share.is_last(), stage == stages - 1);
          next += share.count;
          counts.push_back(share.count);
        }
        EXPECT_EQ(next, layers);
        std::vector<uint64_t> tried(counts.size());
        EXPECT_EQ(SlowestOf(counts, vocabulary), LeastSlowest(&tried, 0, layers, vocabulary))
            << layers << " layers, " << stages << " stages, vocabulary " << vocabulary;
      }
    }
  }
}

TEST(LayerShareTest, OneStageHasEverything) {
  const LayerShare share = *ShareOf(Sizes(5, 100), 0, 1);
  EXPECT_EQ(share.count, 5u);
  EXPECT_TRUE(share.is_first() && share.is_last());
}

TEST(LayerShareTest, EachStageNeedsALayer) {
  EXPECT_EQ(ShareOf(Sizes(2, 100), 0, 3).status(),
            absl::InvalidArgumentError("has 2 layers, which --stages=3 can't share"));
}

}  // namespace
}  // namespace serve::llm
