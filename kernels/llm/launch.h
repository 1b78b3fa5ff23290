// How each kernel is launched: its name in the module, grid and block, by its arguments alone.
//
// Pure: the caller has the driver. Thread safety: functions without state.
#pragma once

#include <string_view>

#include "kernels/llm/arguments.h"

namespace kernels::llm {

struct Launch {
  const char* kernel;
  unsigned grid[3];
  unsigned block[3];
};

Launch LaunchOf(const Embed& arguments);
Launch LaunchOf(const Norm& arguments);
Launch LaunchOf(const GatherRows& arguments);
Launch LaunchOf(const SiluMul& arguments);
Launch LaunchOf(const Gelu& arguments);
Launch LaunchOf(const RopeStore& arguments);
Launch LaunchOf(const PagedAttention& arguments);
Launch LaunchOf(const CopyBlocks& arguments);
Launch LaunchOf(const ArgMax& arguments);
Launch LaunchOf(const EditLogits& arguments);
Launch LaunchOf(const SampleWeights& arguments);
Launch LaunchOf(const SampleToken& arguments);
Launch LaunchOf(const Logprobs& arguments);

// PTX for cuModuleLoadData, ending in a zero byte. It has no variables of the device, so a program
// can be rebuilt in another worker (docs/recovery.md). A kernel is in one of them.
struct Ptx {
  const char* rows;       // row by row: embedding, norms, activations, gathering
  const char* attention;  // what knows pages of keys and values
  const char* sampling;   // from logits to tokens
};
Ptx PtxOfKernels();

}  // namespace kernels::llm
