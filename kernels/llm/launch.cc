#include "kernels/llm/launch.h"

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
  return LaunchOfBlocks(
      arguments.pages.type == KvType::kHalf ? "attention_half" : "attention_float",
      arguments.step.rows, arguments.heads);
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
