#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "serve/llm/model/model_tensors.h"
#include "tests/harness/seed.h"

namespace serve::llm {
namespace {

// A tensor of numbered elements, in the file's layout.
class NumberedTensor {
 public:
  NumberedTensor(TensorLayout layout, uint64_t columns, uint64_t rows, uint64_t head_width) {
    for (uint64_t i = 0; i < columns * rows; ++i) numbers_.push_back(static_cast<float>(i));
    tensor_.tensor = {"t", FindTensorType(0), {columns, rows}, std::as_bytes(std::span(numbers_))};
    tensor_.layout = layout;
    tensor_.columns = columns;
    tensor_.rows = rows;
    tensor_.head_width = head_width;
  }

  // Element by element, as the layouts' definitions have it.
  float At(uint64_t row, uint64_t column) const {
    const uint64_t width = tensor_.head_width;
    switch (tensor_.layout) {
      case TensorLayout::kTransposed:
        return numbers_[column * tensor_.rows + row];
      case TensorLayout::kHalves: {
        const uint64_t head = row / width, pair = row % width / 2, second = row % 2;
        return numbers_[(head * width + second * (width / 2) + pair) * tensor_.columns + column];
      }
      case TensorLayout::kRows:
        break;
    }
    return numbers_[row * tensor_.columns + column];
  }
  const ModelTensor& tensor() const { return tensor_; }

 private:
  std::vector<float> numbers_;
  ModelTensor tensor_;
};

TEST(ReadRowsTest, AnyRowsAreThoseOfTheLayout) {
  std::mt19937_64 random(harness::Seed());
  for (const TensorLayout layout :
       {TensorLayout::kRows, TensorLayout::kTransposed, TensorLayout::kHalves}) {
    for (int round = 0; round < 50; ++round) {
      const uint64_t width = 2 * (1 + random() % 4), columns = 1 + random() % 9;
      const uint64_t rows = width * (1 + random() % 3);
      const NumberedTensor numbered(layout, columns, rows, width);
      const uint64_t first = random() % rows, count = 1 + random() % (rows - first);
      std::vector<float> out(count * columns);
      ReadRows(numbered.tensor(), first, count, out);
      for (uint64_t i = 0; i < out.size(); ++i)
        ASSERT_EQ(out[i], numbered.At(first + i / columns, i % columns));
    }
  }
}

}  // namespace
}  // namespace serve::llm
