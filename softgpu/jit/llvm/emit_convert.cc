// cvt, as softgpu/exec/simd/convert.cc has it.
#include <llvm/IR/Intrinsics.h>

#include "softgpu/jit/llvm/emit.h"

namespace softgpu::jit {

using exec::Type;

namespace {

constexpr int kGeneral = 200, kRounding = 10;

llvm::Intrinsic::ID RoundingOf(int mode) {
  constexpr llvm::Intrinsic::ID kModes[] = {llvm::Intrinsic::nearbyint, llvm::Intrinsic::trunc,
                                            llvm::Intrinsic::floor, llvm::Intrinsic::ceil};
  return kModes[mode & 3];
}

bool IsFloating(Type type) { return type == Type::kF32 || type == Type::kF64; }

}  // namespace

// Integers of any width within registers; imm as IntegerToInteger reads it, never saturating.
Emitter::Value* Emitter::ConvertGeneral(const ProgramInst& i, const Row& row, Value* v) {
  const uint32_t in = i.imm & 255, out = i.imm >> 16 & 255;
  const bool in_signed = (i.imm >> 8 & 1) != 0, out_signed = (i.imm >> 24 & 1) != 0;
  llvm::Type* wide = Like(v, b_.getInt64Ty());
  const auto extend = [&](Value* x, uint32_t bits, bool is_signed) {
    Value* shift = Number(x, 64 - bits);
    Value* high = b_.CreateShl(x, shift);
    return is_signed ? b_.CreateAShr(high, shift) : b_.CreateLShr(high, shift);
  };
  Value* value = extend(b_.CreateZExt(v, wide), in, in_signed);
  value = extend(value, out, out_signed);
  return b_.CreateTrunc(value, Like(v, b_.getIntNTy(ptx::Bits(row.type))));
}

// Out of range goes to the nearest end. NaN is 0, or the top bit when a 64-bit type takes part.
Emitter::Value* Emitter::FloatToInteger(const Row& row, Value* v) {
  Value* a = AsFloat(v, row.type2);
  Value* r = b_.CreateUnaryIntrinsic(RoundingOf(row.variant), a);
  const bool is_signed = ptx::IsSigned(row.type);
  const uint32_t size = ptx::Bits(row.type), bits = size - (is_signed ? 1 : 0);
  llvm::Type* integer = Like(v, b_.getIntNTy(size));
  const uint64_t top = ~uint64_t{0} >> (64 - bits);
  const uint64_t bottom = is_signed ? ~top : 0;
  const bool wide = size == 64 || ptx::Bits(row.type2) == 64;
  const uint64_t nan = wide ? uint64_t{1} << (size - 1) : 0;
  const double limit = __builtin_ldexp(1.0, static_cast<int>(bits));
  Value* above = b_.CreateFCmpOGE(r, llvm::ConstantFP::get(r->getType(), limit));
  Value* below = b_.CreateFCmpOLT(r, llvm::ConstantFP::get(r->getType(), is_signed ? -limit : 0));
  Value* number = b_.CreateFCmpORD(r, r);
  Value* in_range = b_.CreateAnd(b_.CreateNot(b_.CreateOr(above, below)), number);
  Value* safe = b_.CreateSelect(in_range, r, llvm::ConstantFP::get(r->getType(), 0.0));
  Value* value = is_signed ? b_.CreateFPToSI(safe, integer) : b_.CreateFPToUI(safe, integer);
  value = b_.CreateSelect(below, llvm::ConstantInt::get(integer, bottom), value);
  value = b_.CreateSelect(above, llvm::ConstantInt::get(integer, top), value);
  return b_.CreateSelect(number, value, llvm::ConstantInt::get(integer, nan));
}

Emitter::Value* Emitter::Convert(const ProgramInst& i, const Row& row, Value* v) {
  if (row.variant == kGeneral) return ConvertGeneral(i, row, v);
  llvm::Type* to = Like(v, b_.getIntNTy(std::max<uint32_t>(ptx::Bits(row.type), 16)));
  if (IsFloating(row.type) && row.variant >= kRounding)
    return AsBits(
        b_.CreateUnaryIntrinsic(RoundingOf(row.variant - kRounding), AsFloat(v, row.type)));
  if (row.type2 == Type::kF16) {
    Value* half = b_.CreateBitCast(v, Like(v, b_.getHalfTy()));
    return AsBits(CanonicalNan(b_.CreateFPExt(half, Like(v, b_.getFloatTy()))));
  }
  if (row.type == Type::kF16) {
    Value* x = AsFloat(v, Type::kF32);
    Value* half = AsBits(b_.CreateFPTrunc(x, Like(v, b_.getHalfTy())));
    return b_.CreateSelect(b_.CreateFCmpORD(x, x), half, Number(half, 0x7fff));
  }
  const bool to_float = IsFloating(row.type), from_float = IsFloating(row.type2);
  if (!to_float && from_float) return FloatToInteger(row, v);
  if (!to_float) {
    return ptx::IsSigned(row.type2) ? b_.CreateSExtOrTrunc(v, to) : b_.CreateZExtOrTrunc(v, to);
  }
  llvm::Type* wanted = Like(v, row.type == Type::kF32 ? b_.getFloatTy() : b_.getDoubleTy());
  if (!from_float) {
    return AsBits(ptx::IsSigned(row.type2) ? b_.CreateSIToFP(v, wanted)
                                           : b_.CreateUIToFP(v, wanted));
  }
  Value* x = AsFloat(v, row.type2);
  return AsBits(CanonicalNan(b_.CreateFPCast(x, wanted)));
}

}  // namespace softgpu::jit
