#include "kernels/llm/launch.h"

#include <algorithm>

namespace kernels::llm {
namespace {

// Of .cu files' blocks of threads (block_sums.h).
constexpr unsigned kLanes = 32;
constexpr unsigned kWarps = 8;
constexpr unsigned kThreads = kLanes * kWarps;

Launch LaunchOfBlocks(const char* kernel, int32_t first, int32_t second = 1) {
  return {kernel,
          {static_cast<unsigned>(first), static_cast<unsigned>(second), 1},
          {kLanes, kWarps, 1}};
}

// How many blocks it takes for `work` pieces.
int32_t BlocksFor(int32_t work, unsigned of_block) {
  return static_cast<int32_t>((static_cast<unsigned>(work) + of_block - 1) / of_block);
}

// A block takes as many heads that share their keys as divide these.
constexpr int32_t kHeadsOfBlockMax = 4;

int32_t HeadsOfBlock(int32_t sharing) {
  int32_t heads = std::min(sharing, kHeadsOfBlockMax);
  while (sharing % heads != 0) --heads;
  return heads;
}

const char* AttentionOf(KvType type, int32_t heads_of_block) {
  constexpr const char* kOfFloats[] = {"attention_float_1", "attention_float_2",
                                       "attention_float_3", "attention_float_4"};
  constexpr const char* kOfHalves[] = {"attention_half_1", "attention_half_2", "attention_half_3",
                                       "attention_half_4"};
  return (type == KvType::kHalf ? kOfHalves : kOfFloats)[heads_of_block - 1];
}

}  // namespace

Launch LaunchOf(const Embed& arguments) { return LaunchOfBlocks("embed", arguments.step.rows); }

Launch LaunchOf(const Norm& arguments) { return LaunchOfBlocks("add_and_norm", arguments.rows); }

Launch LaunchOf(const GatherRows& arguments) {
  return LaunchOfBlocks("gather_rows", arguments.count);
}

Launch LaunchOf(const SiluMul& arguments) { return LaunchOfBlocks("silu_mul", arguments.rows); }

Launch LaunchOf(const Gelu& arguments) { return LaunchOfBlocks("gelu", arguments.rows); }

Launch LaunchOf(const RopeStore& arguments) {
  return LaunchOfBlocks(
      arguments.pages.type == KvType::kHalf ? "rope_store_half" : "rope_store_float",
      arguments.step.rows, BlocksFor(arguments.heads + 2 * arguments.kv_heads, kWarps));
}

Launch LaunchOf(const PagedAttention& arguments) {
  const int32_t heads = HeadsOfBlock(arguments.heads / arguments.kv_heads);
  return LaunchOfBlocks(AttentionOf(arguments.pages.type, heads), arguments.step.rows,
                        arguments.heads / heads);
}

Launch LaunchOf(const CopyBlocks& arguments) {
  constexpr int32_t kBytesOfThread = 16;
  return LaunchOfBlocks("copy_blocks", BlocksFor(arguments.block_bytes / kBytesOfThread, kThreads),
                        arguments.pools);
}

Launch LaunchOf(const ArgMax& arguments) { return LaunchOfBlocks("arg_max", arguments.rows); }

Launch LaunchOf(const EditLogits& arguments) {
  return LaunchOfBlocks("edit_logits", arguments.rows);
}

Launch LaunchOf(const SampleWeights& arguments) {
  return LaunchOfBlocks("sample_weights", arguments.rows);
}

Launch LaunchOf(const SampleToken& arguments) {
  return LaunchOfBlocks("sample_token", arguments.rows);
}

Launch LaunchOf(const Logprobs& arguments) { return LaunchOfBlocks("logprobs", arguments.rows); }

}  // namespace kernels::llm
