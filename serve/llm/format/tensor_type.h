// The types that tensors have in GGUF files: how many elements a block of a type holds, and how
// many bytes it takes. A row of a tensor is a whole number of blocks. Numbers, names and sizes are
// those of the format's documentation.
//
// The table lists also types that are not read, because the sizes of all tensors are needed to
// check a file, and because a refusal names the type. Thread safety: constants.
#pragma once

#include <cstdint>
#include <string_view>

namespace serve::llm {

struct TensorType {
  uint32_t number;  // in the file
  std::string_view name;
  uint32_t block_elements;
  uint32_t block_bytes;
};

// Null: the format's documentation has no type of this number.
const TensorType* FindTensorType(uint32_t number);

}  // namespace serve::llm
