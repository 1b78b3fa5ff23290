// Tensors as floats: the CPU reference of what kernels make of a model's weights at load.
//
// A block has a scale `d`, types that end in 1 also a minimum `m`. Blocks of K types have 256
// elements in sub-blocks of 16 or 32, each with a scale (and, Q2_K, Q4_K, Q5_K, a minimum) that is
// itself a small whole number times the block's. The layout of each type is at its function. A
// value is computed in float in the order that GGUF's documentation gives, so two readers agree in
// every bit.
//
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <span>

#include "serve/llm/format/tensor_type.h"

namespace serve::llm {

// True for the types that Dequantise takes.
bool IsReadable(const TensorType& type);

// REQUIRES: IsReadable(type); `blocks` is whole blocks, and `out` has as many elements as they.
void Dequantise(const TensorType& type, std::span<const std::byte> blocks, std::span<float> out);

}  // namespace serve::llm
