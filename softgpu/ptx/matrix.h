// Shapes of matrix fragments: how many registers each operand takes and where in the matrix an
// element lies.
#pragma once

#include "softgpu/ptx/ir.h"

namespace softgpu::ptx {

struct MatrixShape {
  uint32_t m = 0, n = 0, k = 0;
  uint32_t per_register = 0;            // elements of a and b in one register
  uint32_t a = 0, b = 0, c = 0, d = 0;  // registers
};

// Of mma. All zero when the shape and types do not go together.
MatrixShape ShapeOf(const Instruction& i);

// One operand of wmma. Its layout over lanes is not documented, so ours is the simplest: elements
// in row order, as many neighbours in a register as fit, lane after lane; f16 factors have
// registers to spare, which hold zeros.
struct Fragment {
  uint32_t rows = 0, columns = 0;
  Type type = Type::kNone;
  uint32_t per_register = 0, registers = 0;
};
enum class Role : uint8_t { kA, kB, kC };
// All zero when the shape and type do not go together.
Fragment FragmentOf(MmaShape shape, Role role, Type type);

// The types of wmma.mma: a and b, c, d. f16 factors are not written.
struct WmmaTypes {
  Type a = Type::kNone, b = Type::kNone, c = Type::kNone, d = Type::kNone;
};
WmmaTypes TypesOfWmma(const Instruction& i);

}  // namespace softgpu::ptx
