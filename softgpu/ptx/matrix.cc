#include "softgpu/ptx/matrix.h"

namespace softgpu::ptx {

MatrixShape ShapeOf(const Instruction& i) {
  uint32_t k = 0;
  switch (static_cast<MmaShape>(i.mode)) {
    case MmaShape::kM16N8K4:
      k = 4;
      break;
    case MmaShape::kM16N8K8:
      k = 8;
      break;
    case MmaShape::kM16N8K16:
      k = 16;
      break;
    case MmaShape::kM16N8K32:
      k = 32;
      break;
    default:
      return {};
  }
  const Type a = i.type2, b = i.type3, d = i.type, c = i.type4;
  const bool bytes = (a == Type::kU8 || a == Type::kS8) && (b == Type::kU8 || b == Type::kS8);
  if (!bytes && a != b) return {};
  const uint32_t bits = a == Type::kTF32 ? 32 : bytes ? 8 : 16;
  if (bytes ? d != Type::kS32 || c != Type::kS32 : d == Type::kS32 || c == Type::kS32) return {};
  if (a != Type::kF16 && !bytes && (d != Type::kF32 || c != Type::kF32)) return {};
  if (c == Type::kNone || d != c || !i.Has(kHasMode) || !i.Has(kRow) || !i.Has(kCol)) return {};
  const uint32_t columns = 128 / bits;  // of k that one register of each of four lanes covers
  if (k != columns && k != 2 * columns) return {};
  const uint32_t accumulators = d == Type::kF16 ? 2 : 4;
  return {k, 32 / bits, 2 * (k / columns), k / columns, accumulators, accumulators};
}

}  // namespace softgpu::ptx
