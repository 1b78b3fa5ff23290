// What layers of each architecture compute, one row each: the differences that tensors' names do
// not show. A bias or a norm of heads is computed where the file has its tensor.
//
// Thread safety: constants.
#pragma once

#include "kernels/llm/arguments.h"
#include "serve/llm/model/architecture.h"

namespace serve::llm {

struct LayerKind {
  ArchitectureBit architecture;
  kernels::llm::NormKind norm;
  kernels::llm::RopePairs pairs;  // where positions rotate
  bool gated;                     // silu(gate) * up; else gelu(up)
};

const LayerKind& LayerKindOf(const Architecture& architecture);

}  // namespace serve::llm
