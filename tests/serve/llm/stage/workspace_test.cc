// The pure parts of a stage: where a step's tensors lie, how positions turn, and what layers are.
#include "serve/llm/stage/workspace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "serve/llm/stage/layer_kind.h"
#include "serve/llm/stage/rope_turns.h"

namespace serve::llm {
namespace {

ModelSizes TinySizes() {
  ModelSizes sizes;
  sizes.layers = 2;
  sizes.width = 48;
  sizes.feed_forward = 100;
  sizes.heads = 6;
  sizes.kv_heads = 2;
  sizes.head_width = 8;
  sizes.vocabulary = 131;
  sizes.rope_width = 8;
  sizes.rope_base = 10000;
  return sizes;
}

// Each tensor has room for its rows, padding included, before the next one begins.
TEST(WorkspaceTest, TensorsDoNotOverlap) {
  const ModelSizes sizes = TinySizes();
  for (const bool gated : {false, true}) {
    for (const int32_t rows : {1, 31, 32, 33, 256}) {
      PackedBatch batch;
      batch.ids.resize(static_cast<size_t>(rows));
      batch.start.resize(3);
      batch.table.resize(40);
      batch.sampled.resize(2);
      const Workspace space = WorkspaceOf(sizes, gated, batch, {32, true});
      const size_t real = static_cast<size_t>(rows);
      const size_t padded = (real + 31) / 32 * 32;
      const std::pair<size_t, size_t> tensors[] = {{space.integers, batch.ids.size() + 3 + 40 + 2},
                                                   {space.x, real * 48},
                                                   {space.normed, padded * 48},
                                                   {space.qkv, padded * 80},
                                                   {space.q, real * 48},
                                                   {space.attended, padded * 48},
                                                   {space.added, padded * 48},
                                                   {space.up, padded * (gated ? 200 : 100)},
                                                   {space.inner, padded * 100},
                                                   {space.sampled, 32 * 48},
                                                   {space.logits, 32 * 131}};
      for (size_t i = 0; i < std::size(tensors); ++i) {
        const size_t end = i + 1 < std::size(tensors) ? tensors[i + 1].first : space.bytes;
        EXPECT_EQ(tensors[i].first % 256, 0u);
        EXPECT_LE(tensors[i].first + tensors[i].second * 4, end) << "tensor " << i;
      }
    }
  }
}

TEST(RopeTurnsTest, FirstPairsTurnFastest) {
  const std::vector<float> turns = RopeTurns(TinySizes(), 3, {});
  ASSERT_EQ(turns.size(), 3u * 8);
  EXPECT_EQ(turns[0], 1);  // position 0 turns nothing
  EXPECT_EQ(turns[1], 0);
  EXPECT_FLOAT_EQ(turns[2 * 8], static_cast<float>(std::cos(2.0)));
  EXPECT_FLOAT_EQ(turns[2 * 8 + 1], static_cast<float>(std::sin(2.0)));
  EXPECT_FLOAT_EQ(turns[2 * 8 + 6], static_cast<float>(std::cos(2.0 / 1000)));  // 10000^(3/4)
}

TEST(RopeTurnsTest, FactorsStretch) {
  const std::vector<float> factors = {1, 2, 4, 8};
  const std::vector<float> turns = RopeTurns(TinySizes(), 9, factors);
  const std::vector<float> plain = RopeTurns(TinySizes(), 9, {});
  EXPECT_FLOAT_EQ(turns[8 * 8 + 6], plain[1 * 8 + 6]);
  EXPECT_FLOAT_EQ(turns[8 * 8 + 7], plain[1 * 8 + 7]);
  EXPECT_EQ(turns[8 * 8], plain[8 * 8]);
}

TEST(LayerKindTest, EachServedArchitectureHasARow) {
  for (const char* const name : {"llama", "qwen2", "qwen3", "gpt2"})
    EXPECT_EQ(LayerKindOf(*FindArchitecture(name)).architecture, FindArchitecture(name)->bit);
}

}  // namespace
}  // namespace serve::llm
