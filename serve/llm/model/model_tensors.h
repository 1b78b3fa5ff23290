// A file's tensors as the layers need them: found under GGUF's names and brought to GGUF's layout,
// in whichever format the file is.
//
// Two layouts differ. The package transformers turns an element of a head together with the one
// half a head further, GGUF's files of Llama have the two side by side: rows are exchanged, and one
// kernel computes the same bits for both. GPT-2's matrices are transposed.
//
// Thread safety: const methods from any thread. Ownership: bytes are the mapped file's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "serve/llm/format/tensor.h"
#include "serve/llm/model/architecture.h"

namespace serve::llm {

enum class TensorNames { kGguf, kTransformers };

enum class TensorLayout {
  kRows,        // as the layers need it
  kTransposed,  // [columns, rows]
  kHalves,      // rows of each head: first those of all pairs' first elements, then the second ones
};

struct ModelTensor {
  Tensor tensor;
  TensorLayout layout = TensorLayout::kRows;
  uint64_t columns = 0;     // elements that lie side by side, in the layout that the layers need
  uint64_t rows = 0;        // 1: a vector
  uint64_t head_width = 0;  // rows of a head, for kHalves

  uint64_t Elements() const { return columns * rows; }
};

class ModelTensors {
 public:
  ModelTensors() = default;
  // Looks for each tensor of the architecture, and notes the differences.
  ModelTensors(const TensorSet& tensors, TensorNames names, const ModelSizes& sizes);

  // Null: the file has no such tensor. `name` is GGUF's, as "blk.0.attn_q.weight".
  const ModelTensor* Find(std::string_view name) const;

  // The ends of sentences on tensors that keep the model from being served: missing ones, other
  // shapes, types that are not read, tensors that the architecture has no use for. At most a few.
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  friend class TensorBinder;
  absl::flat_hash_map<std::string, ModelTensor> tensors_;
  std::vector<std::string> faults_;
};

// Rows as floats, in the layout that the layers need. REQUIRES: the tensor is of ModelTensors
// without faults, first_row + rows <= tensor.rows, and `out` has rows * tensor.columns elements.
void ReadRows(const ModelTensor& tensor, uint64_t first_row, uint64_t rows, std::span<float> out);

}  // namespace serve::llm
