// Holds matrix fragments and bulk copies against what their shapes and spaces need.
#include "softgpu/ptx/instruction_table.h"
#include "softgpu/ptx/matrix.h"
#include "softgpu/ptx/parser.h"

namespace softgpu::ptx {

// cp.async.bulk: what goes where, and the mbarrier that is told.
bool Parser::CheckBulk(const Instruction& i, Operand* o) {
  const bool copies = i.op == Op::kCpBulk;
  const AsyncMode mode = copies ? static_cast<AsyncMode>(i.mode) : AsyncMode::kCopy;
  if (mode == AsyncMode::kCommitGroup) return i.count == 0;
  if (mode == AsyncMode::kWaitGroup) {
    return i.count == 1 && o[0].kind == Operand::Kind::kImmediate;
  }
  const uint32_t addresses = mode == AsyncMode::kPrefetch ? 1 : 2;
  const bool tells = i.Has(kSync), multicast = i.Has(kMulticast);
  const uint32_t count = addresses + 1 + (tells ? 1 : 0);
  if (i.count != count + (multicast ? 1 : 0) || (multicast && !tells)) return false;
  if (multicast && !CheckValue(&o[count], Type::kB16, false, false)) return false;
  for (uint32_t k = 0; k < count; ++k) {
    const bool fits = k == addresses ? CheckValue(&o[k], Type::kB32, false, false)
                                     : CheckOperand(i, 'A', false, &o[k]);
    if (!fits) return false;
  }
  if (mode == AsyncMode::kPrefetch) return !tells;
  return tells ? i.space == Space::kShared && i.space2 != Space::kGeneric
               : i.space == Space::kGlobal && i.space2 == Space::kShared;
}

// A fragment of `count` registers that hold `type`.
bool Parser::IsFragment(const Operand& operand, uint32_t count, Type type) const {
  const bool vector = operand.kind == Operand::Kind::kVector;
  if (count == 0 || (vector ? operand.count : 1) != count) return false;
  for (uint32_t k = 0; k < count; ++k) {
    const Operand& element = vector ? function_->operands[operand.index + k] : operand;
    if (RegisterBits(element) != (type == Type::kF64 ? 64u : 32u)) return false;
  }
  return true;
}

// Fragments have as many registers as the shape needs.
bool Parser::CheckMatrix(const Instruction& i, const Operand* o) const {
  const bool in_shared = i.space == Space::kShared || i.space == Space::kGeneric;
  const MmaShape shape = static_cast<MmaShape>(i.mode);
  const auto fits = [&](const Operand& operand, Role role, Type type) {
    const Fragment fragment = FragmentOf(shape, role, type);
    return type != Type::kNone && IsFragment(operand, fragment.registers, type);
  };
  if (!i.Has(kHasMode)) return false;
  switch (i.op) {
    case Op::kLdmatrix:
    case Op::kStmatrix:
      return shape == MmaShape::kM8N8 && in_shared &&
             IsFragment(o[i.op == Op::kStmatrix ? 1 : 0], i.vector, Type::kB32);
    case Op::kMovmatrix:
      return shape == MmaShape::kM8N8 && i.Has(kTranspose);
    case Op::kWmmaLoadA:
      return fits(o[0], Role::kA, i.type);
    case Op::kWmmaLoadB:
      return fits(o[0], Role::kB, i.type);
    case Op::kWmmaLoadC:
      return fits(o[0], Role::kC, i.type);
    case Op::kWmmaStoreD:
      return fits(o[1], Role::kC, i.type);
    case Op::kWmmaMma: {
      const WmmaTypes types = TypesOfWmma(i);
      return fits(o[0], Role::kC, types.d) && fits(o[1], Role::kA, types.a) &&
             fits(o[2], Role::kB, types.b) && fits(o[3], Role::kC, types.c) &&
             (types.a == Type::kB1) == (i.combine != Combine::kNone);
    }
    default: {
      const MatrixShape s = ShapeOf(i);
      return IsFragment(o[0], s.d, i.type) && IsFragment(o[1], s.a, i.type2) &&
             IsFragment(o[2], s.b, i.type3) && IsFragment(o[3], s.c, i.type4);
    }
  }
}

bool IsMatrix(Op op) {
  return op == Op::kMovmatrix || RowOf(op).signature.find('M') != std::string_view::npos;
}

}  // namespace softgpu::ptx
