// Where a step's intermediate tensors lie in the one piece of memory that it allocates and frees:
// lane memory, which other programs have between the steps. Pure.
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "serve/engine/gemm_width.h"
#include "serve/llm/model/architecture.h"
#include "serve/llm/stage/packed_batch.h"

namespace serve::llm {

// Offsets in bytes, each aligned. Tensors of floats have rows for the padded count, since
// products read and write these, too.
struct Workspace {
  size_t integers = 0;  // the batch's arrays, one after the other
  size_t x = 0;         // [rows, width]: the residual stream
  size_t normed = 0;    // [padded, width]
  size_t qkv = 0;       // [padded, queries + keys + values]
  size_t q = 0;         // [rows, queries]
  size_t attended = 0;  // [padded, queries]
  size_t added = 0;     // [padded, width]: what a part of a layer adds to x
  size_t up = 0;        // [padded, 1 or 2 times feed_forward]
  size_t inner = 0;     // [padded, feed_forward]
  size_t sampled = 0;   // [padded samples, width]
  size_t logits = 0;    // [padded samples, vocabulary]
  size_t bytes = 0;     // of all
};

Workspace WorkspaceOf(const ModelSizes& sizes, bool gated, const PackedBatch& batch,
                      const engine::GemmWidth& width);

}  // namespace serve::llm
