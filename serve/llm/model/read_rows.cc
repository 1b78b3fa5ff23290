// Brings rows of a file's tensor to the layout that the layers need.
#include <algorithm>
#include <cassert>

#include "serve/llm/format/dequantise.h"
#include "serve/llm/model/model_tensors.h"

namespace serve::llm {
namespace {

// Elements that lie side by side in the file. REQUIRES: `first` is where a block begins.
void ReadElements(const Tensor& tensor, uint64_t first, std::span<float> out) {
  const TensorType& type = *tensor.type;
  Dequantise(type,
             tensor.bytes.subspan(first / type.block_elements * type.block_bytes,
                                  out.size() / type.block_elements * type.block_bytes),
             out);
}

// The row of the file that becomes `row`: pairs (i, i + half) of a head become (2i, 2i + 1).
uint64_t RowOfHalves(uint64_t row, uint64_t head_width) {
  const uint64_t within = row % head_width;
  return row - within + within % 2 * (head_width / 2) + within / 2;
}

// Reads the file's rows, which are columns here, one after the other: a piece of each.
void ReadTransposed(const ModelTensor& tensor, uint64_t first_row, uint64_t rows,
                    std::span<float> out) {
  std::vector<float> piece(rows);
  for (uint64_t column = 0; column < tensor.columns; ++column) {
    ReadElements(tensor.tensor, column * tensor.rows + first_row, piece);
    for (uint64_t row = 0; row < rows; ++row) out[row * tensor.columns + column] = piece[row];
  }
}

}  // namespace

void ReadRows(const ModelTensor& tensor, uint64_t first_row, uint64_t rows, std::span<float> out) {
  assert(first_row + rows <= tensor.rows && out.size() == rows * tensor.columns);
  switch (tensor.layout) {
    case TensorLayout::kRows:
      return ReadElements(tensor.tensor, first_row * tensor.columns, out);
    case TensorLayout::kTransposed:
      // The types of directories have blocks of one element, so a piece may begin anywhere.
      assert(tensor.tensor.type->block_elements == 1);
      return ReadTransposed(tensor, first_row, rows, out);
    case TensorLayout::kHalves:
      for (uint64_t row = 0; row < rows; ++row)
        ReadElements(tensor.tensor,
                     RowOfHalves(first_row + row, tensor.head_width) * tensor.columns,
                     out.subspan(row * tensor.columns, tensor.columns));
  }
}

}  // namespace serve::llm
