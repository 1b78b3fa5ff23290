#include "softgpu/ptx/matrix.h"

#include <algorithm>

namespace softgpu::ptx {
namespace {

struct Size {
  uint32_t m, n, k;
};

// In the order of MmaShape.
constexpr Size kSizes[] = {{16, 8, 4},   {16, 8, 8},  {16, 8, 16},  {16, 8, 32},
                           {8, 8, 0},    {16, 8, 64}, {16, 8, 128}, {16, 8, 256},
                           {8, 8, 4},    {8, 8, 16},  {8, 8, 32},   {8, 8, 128},
                           {16, 16, 16}, {16, 16, 8}, {8, 32, 16},  {32, 8, 16}};

bool IsByte(Type type) { return type == Type::kU8 || type == Type::kS8; }
bool IsNibble(Type type) { return type == Type::kU4 || type == Type::kS4; }
bool IsFp8(Type type) { return type == Type::kE4M3 || type == Type::kE5M2; }

// Which accumulators go with factors of these types.
bool TypesFit(Type a, Type b, Type c, Type d) {
  const bool same_kind =
      (IsByte(a) && IsByte(b)) || (IsNibble(a) && IsNibble(b)) || (IsFp8(a) && IsFp8(b)) || a == b;
  if (!same_kind) return false;
  const auto half_or_float = [](Type type) { return type == Type::kF16 || type == Type::kF32; };
  switch (a) {
    case Type::kF16:
    case Type::kE4M3:
    case Type::kE5M2:
      return half_or_float(c) && half_or_float(d);
    case Type::kBF16:
    case Type::kTF32:
      return c == Type::kF32 && d == Type::kF32;
    case Type::kF64:
      return c == Type::kF64 && d == Type::kF64;
    default:
      return c == Type::kS32 && d == Type::kS32;
  }
}

uint32_t AccumulatorRegisters(uint32_t elements, Type type) {
  return type == Type::kF16 ? elements / 64 : elements / 32;
}

}  // namespace

MatrixShape ShapeOf(const Instruction& i) {
  if (!i.Has(kHasMode) || !i.Has(kRow) || !i.Has(kCol)) return {};
  const Size size = kSizes[i.mode];
  const Type a = i.type2, b = i.type3, d = i.type, c = i.type4;
  if (size.n != 8 || size.m > 16 || size.k == 0 || !TypesFit(a, b, c, d)) return {};
  if ((a == Type::kB1) != (i.combine != Combine::kNone)) return {};
  if (i.rounding != Rounding::kNone && a != Type::kF64) return {};
  const uint32_t bits = a == Type::kF64 ? 32 : Bits(a);
  const uint32_t columns = 128 / bits;  // of k that one register of each of four lanes covers
  const uint32_t steps = size.k / columns;
  const uint32_t steps_max = a == Type::kF64 ? 4 : 2;
  if (size.k % columns != 0 || steps == 0 || steps == 3 || steps > steps_max) return {};
  if (size.m == 8 &&
      (steps != 1 || (a != Type::kF64 && !IsByte(a) && !IsNibble(a) && a != Type::kB1)))
    return {};
  const uint32_t elements = size.m * size.n;
  return {size.m,
          size.n,
          size.k,
          a == Type::kF64 ? 1 : 32 / bits,
          size.m / 8 * steps,
          steps,
          AccumulatorRegisters(elements, c),
          AccumulatorRegisters(elements, d)};
}

Fragment FragmentOf(MmaShape shape, Role role, Type type) {
  if (type == Type::kNone) return {};
  const Size size = kSizes[static_cast<size_t>(shape)];
  Fragment f;
  f.type = type;
  f.rows = role == Role::kB ? size.k : size.m;
  f.columns = role == Role::kA ? size.k : size.n;
  const uint32_t elements = f.rows * f.columns;
  if (role == Role::kC) {
    f.per_register = type == Type::kF16 ? 2 : 1;
    f.registers = AccumulatorRegisters(elements, type);
    return f;
  }
  const bool large = size.m * size.n == 256;
  const bool fits = type == Type::kTF32  ? shape == MmaShape::kM16N16K8
                    : type == Type::kF64 ? shape == MmaShape::kM8N8K4
                    : IsNibble(type)     ? shape == MmaShape::kM8N8K32
                    : type == Type::kB1  ? shape == MmaShape::kM8N8K128
                                         : large && size.k == 16 && !IsFp8(type);
  if (!fits) return {};
  f.per_register = type == Type::kF64 ? 1 : 32 / Bits(type);
  f.registers = type == Type::kF16 ? 8 : elements / 32 / f.per_register;
  return f;
}

WmmaTypes TypesOfWmma(const Instruction& i) {
  if (i.type3 == Type::kNone) return {Type::kF16, Type::kF16, i.type2, i.type};
  WmmaTypes types{i.type2, i.type3, i.type4, i.type};
  return TypesFit(types.a, types.b, types.c, types.d) ? types : WmmaTypes{};
}

}  // namespace softgpu::ptx
