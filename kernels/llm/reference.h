// Each kernel's results, computed on the host: sums in double, one after the other, each rounded
// once. Arguments are the kernel's, with addresses of the host.
//
// Thread safety: functions without state.
#pragma once

#include "kernels/llm/arguments.h"

namespace kernels::llm {

void Reference(const Embed& arguments);
void Reference(const Norm& arguments);
void Reference(const GatherRows& arguments);
void Reference(const SiluMul& arguments);
void Reference(const Gelu& arguments);
void Reference(const RopeStore& arguments);
void Reference(const PagedAttention& arguments);
void Reference(const CopyBlocks& arguments);
void Reference(const ArgMax& arguments);
void Reference(const EditLogits& arguments);
void Reference(const SampleWeights& arguments);
void Reference(const SampleToken& arguments);
void Reference(const Logprobs& arguments);

}  // namespace kernels::llm
