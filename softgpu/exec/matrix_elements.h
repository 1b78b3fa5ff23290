// Elements of matrix fragments as numbers, and their products. Thread safety: pure functions.
#pragma once

#include <cstdint>

#include "softgpu/exec/warp.h"
#include "softgpu/ptx/types.h"

namespace softgpu::exec {

// Element `i` of a register that holds `type`.
double Element(uint64_t bits, ptx::Type type, uint32_t i);
// A number as the bits of one accumulator: f16, f32, s32 (saturating or wrapping) or f64.
uint64_t AccumulatorBits(double value, ptx::Type type, bool saturates);

// A lane's register of a fragment.
uint64_t FragmentRegister(const Warp* w, uint32_t offset, uint32_t lane, ptx::Type type);
void SetFragmentRegister(Warp* w, uint32_t offset, uint32_t lane, ptx::Type type, uint64_t bits);

struct Matrices {
  double a[16 * 256], b[256 * 8], c[512];  // by rows
};
// c += a * b; for single bits the sum of a ^ b or a & b.
void Multiply(Matrices* matrices, uint32_t m, uint32_t n, uint32_t k, ptx::Combine combine,
              bool fused);

}  // namespace softgpu::exec
