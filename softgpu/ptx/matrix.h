// Shapes of mma fragments: how many registers each operand takes and where in the matrix an element
// lies.
#pragma once

#include "softgpu/ptx/ir.h"

namespace softgpu::ptx {

struct MatrixShape {
  uint32_t k = 0;                       // m is 16 and n is 8
  uint32_t per_register = 0;            // elements of a and b in one 32-bit register
  uint32_t a = 0, b = 0, c = 0, d = 0;  // registers
};

// All zero when the shape and types do not go together.
MatrixShape ShapeOf(const Instruction& i);

}  // namespace softgpu::ptx
