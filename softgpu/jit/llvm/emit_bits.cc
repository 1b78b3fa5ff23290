// Shifts, funnel shifts and lop3.
#include <vector>

#include "softgpu/jit/llvm/emit.h"

namespace softgpu::jit {

using exec::Op;

Emitter::Value* Emitter::ComputeBits(const ProgramInst& i, const Row& row,
                                     const std::vector<Value*>& v) {
  const bool is_signed = ptx::IsSigned(row.type);
  const uint32_t bits = v[0]->getType()->getScalarSizeInBits();
  switch (row.op) {
    case Op::kShl:
    case Op::kShr: {
      Value* count = v[1];
      Value* amount =
          b_.CreateZExtOrTrunc(b_.CreateAnd(count, Number(count, bits - 1)), v[0]->getType());
      Value* past = b_.CreateICmpUGE(count, Number(count, bits));
      if (row.op == Op::kShr && is_signed)
        return b_.CreateAShr(v[0], b_.CreateSelect(past, Number(v[0], bits - 1), amount));
      Value* shifted =
          row.op == Op::kShl ? b_.CreateShl(v[0], amount) : b_.CreateLShr(v[0], amount);
      return b_.CreateSelect(past, Number(v[0], 0), shifted);
    }
    case Op::kShf: {  // variant: bit 0 right, bit 1 wrap
      Value* count = v[2];
      const bool right = (row.variant & 1) != 0, wraps = (row.variant & 2) != 0;
      // Not the intrinsic: LLVM 14 miscounts a vector of constants with a zero among them.
      Value* amount = b_.CreateAnd(count, Number(count, 31));
      Value* rest = b_.CreateSub(Number(count, 31), amount);
      Value* low = right ? b_.CreateLShr(v[0], amount)
                         : b_.CreateLShr(b_.CreateLShr(v[0], Number(v[0], 1)), rest);
      Value* high = right ? b_.CreateShl(b_.CreateShl(v[1], Number(v[1], 1)), rest)
                          : b_.CreateShl(v[1], amount);
      Value* funnel = b_.CreateOr(high, low);
      if (wraps) return funnel;
      return b_.CreateSelect(b_.CreateICmpUGE(count, Number(count, 32)), right ? v[1] : v[0],
                             funnel);
    }
    default: {
      Value* result = Number(v[0], 0);
      for (int k = 0; k < 8; ++k) {
        if ((i.imm >> k & 1) == 0) continue;
        Value* term = b_.CreateAnd((k & 4) != 0 ? v[0] : b_.CreateNot(v[0]),
                                   (k & 2) != 0 ? v[1] : b_.CreateNot(v[1]));
        term = b_.CreateAnd(term, (k & 1) != 0 ? v[2] : b_.CreateNot(v[2]));
        result = b_.CreateOr(result, term);
      }
      return result;
    }
  }
}

}  // namespace softgpu::jit
