#include "softgpu/exec/matrix_elements.h"

#include <algorithm>
#include <cmath>

#include "softgpu/exec/half_scalar.h"

namespace softgpu::exec {

using ptx::Type;

double Element(uint64_t bits, Type type, uint32_t i) {
  const uint32_t word = static_cast<uint32_t>(bits);
  switch (type) {
    case Type::kF16:
      return scalar::HalfToFloat(static_cast<uint16_t>(word >> 16 * i));
    case Type::kBF16:
      return scalar::Bf16ToFloat(static_cast<uint16_t>(word >> 16 * i));
    case Type::kTF32:
      return __builtin_bit_cast(float, word & ~0x1fffu);  // ten bits of mantissa
    case Type::kE4M3:
    case Type::kE5M2:
      return scalar::Fp8ToFloat(static_cast<uint8_t>(word >> 8 * i), type == Type::kE4M3 ? 4 : 5);
    case Type::kS8:
      return static_cast<int8_t>(word >> 8 * i);
    case Type::kU8:
      return static_cast<uint8_t>(word >> 8 * i);
    case Type::kS4:
      return static_cast<int32_t>(word << (28 - 4 * i)) >> 28;
    case Type::kU4:
      return word >> 4 * i & 15;
    case Type::kB1:
      return word >> i & 1;
    case Type::kS32:
      return static_cast<int32_t>(word);
    case Type::kF64:
      return __builtin_bit_cast(double, bits);
    default:
      return __builtin_bit_cast(float, word);
  }
}

uint64_t AccumulatorBits(double value, Type type, bool saturates) {
  switch (type) {
    case Type::kF16:
      return scalar::FloatToHalf(static_cast<float>(value));
    case Type::kS32:
      if (saturates) value = std::clamp(value, -0x1p31, 0x1p31 - 1);
      return static_cast<uint32_t>(static_cast<int64_t>(value));
    case Type::kF64:
      return __builtin_bit_cast(uint64_t, value);
    default: {
      const float f = static_cast<float>(value);
      return f == f ? __builtin_bit_cast(uint32_t, f) : 0x7fffffffu;
    }
  }
}

uint64_t FragmentRegister(const Warp* w, uint32_t offset, uint32_t lane, Type type) {
  return type == Type::kF64 ? reinterpret_cast<const uint64_t*>(w->regs + offset)[lane]
                            : reinterpret_cast<const uint32_t*>(w->regs + offset)[lane];
}

void SetFragmentRegister(Warp* w, uint32_t offset, uint32_t lane, Type type, uint64_t bits) {
  if (type == Type::kF64) {
    reinterpret_cast<uint64_t*>(w->regs + offset)[lane] = bits;
  } else {
    reinterpret_cast<uint32_t*>(w->regs + offset)[lane] = static_cast<uint32_t>(bits);
  }
}

void Multiply(Matrices* matrices, uint32_t m, uint32_t n, uint32_t k, ptx::Combine combine,
              bool fused) {
  for (uint32_t row = 0; row < m; ++row) {
    for (uint32_t column = 0; column < n; ++column) {
      double& sum = matrices->c[row * n + column];
      for (uint32_t at = 0; at < k; ++at) {
        const double x = matrices->a[row * k + at], y = matrices->b[at * n + column];
        if (fused) {
          sum = std::fma(x, y, sum);
        } else {
          sum += combine == ptx::Combine::kXor ? x + y - 2 * x * y : x * y;
        }
      }
    }
  }
}

}  // namespace softgpu::exec
