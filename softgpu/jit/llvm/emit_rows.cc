// Rows of the handler tables, special registers and parameters. Every formula is that of
// softgpu/exec/simd, bit for bit; it works on scalars and vectors alike.
#include <llvm/IR/Intrinsics.h>

#include <cstddef>
#include <cstring>

#include "softgpu/jit/llvm/emit.h"

namespace softgpu::jit {

using exec::Internal;
using exec::Op;
using exec::Type;
using exec::Warp;
using ptx::Special;

llvm::Type* Emitter::Like(Value* v, llvm::Type* scalar) {
  return v->getType()->isVectorTy() ? VectorOf(scalar) : scalar;
}

Emitter::Value* Emitter::Number(Value* like, uint64_t bits) {
  return llvm::ConstantInt::get(like->getType(), bits);
}

Emitter::Value* Emitter::AsFloat(Value* v, Type type) {
  llvm::Type* scalar = type == Type::kF32 ? b_.getFloatTy() : b_.getDoubleTy();
  return b_.CreateBitCast(v, Like(v, scalar));
}

Emitter::Value* Emitter::AsBits(Value* v) {
  return b_.CreateBitCast(v, Like(v, b_.getIntNTy(v->getType()->getScalarSizeInBits())));
}

// Single-precision results have one NaN.
Emitter::Value* Emitter::CanonicalNan(Value* x) {
  if (!x->getType()->getScalarType()->isFloatTy()) return x;
  Value* nan =
      b_.CreateBitCast(llvm::ConstantInt::get(Like(x, b_.getInt32Ty()), 0x7fffffff), x->getType());
  return b_.CreateSelect(b_.CreateFCmpORD(x, x), x, nan);
}

Emitter::Value* Emitter::Predicates(const ProgramInst& i, const Row& row,
                                    const std::vector<Value*>& v) {
  Value* a = (i.imm & 1) != 0 ? b_.CreateNot(v[0]) : v[0];
  Value* b = v.size() < 2 ? nullptr : (i.imm & 2) != 0 ? b_.CreateNot(v[1]) : v[1];
  switch (row.op) {
    case Op::kAnd:
      return b_.CreateAnd(a, b);
    case Op::kOr:
      return b_.CreateOr(a, b);
    case Op::kXor:
      return b_.CreateXor(a, b);
    case Op::kNot:
      return b_.CreateNot(a);
    default:
      return a;
  }
}

Emitter::Value* Emitter::Compare(const Row& row, Value* a, Value* b) {
  using C = ptx::Compare;
  const C compare = static_cast<C>(row.variant);
  if (row.type == Type::kF32 || row.type == Type::kF64) {
    using P = llvm::CmpInst::Predicate;
    const std::pair<C, P> kPredicates[] = {{C::kEq, P::FCMP_OEQ},  {C::kNe, P::FCMP_ONE},
                                           {C::kLt, P::FCMP_OLT},  {C::kLe, P::FCMP_OLE},
                                           {C::kEqu, P::FCMP_UEQ}, {C::kNeu, P::FCMP_UNE},
                                           {C::kLtu, P::FCMP_ULT}, {C::kLeu, P::FCMP_ULE},
                                           {C::kNum, P::FCMP_ORD}, {C::kNan, P::FCMP_UNO}};
    for (const auto& [test, predicate] : kPredicates) {
      if (test == compare)
        return b_.CreateFCmp(predicate, AsFloat(a, row.type), AsFloat(b, row.type));
    }
  }
  const bool is_signed = ptx::IsSigned(row.type);
  switch (compare) {
    case C::kEq:
      return b_.CreateICmpEQ(a, b);
    case C::kNe:
      return b_.CreateICmpNE(a, b);
    case C::kLt:
      return is_signed ? b_.CreateICmpSLT(a, b) : b_.CreateICmpULT(a, b);
    default:
      return is_signed ? b_.CreateICmpSLE(a, b) : b_.CreateICmpULE(a, b);
  }
}

Emitter::Value* Emitter::ComputeInteger(const ProgramInst& i, const Row& row,
                                        const std::vector<Value*>& v) {
  const bool is_signed = ptx::IsSigned(row.type);
  const uint32_t bits = v[0]->getType()->getScalarSizeInBits();
  const auto widened = [&](Value* x) {
    llvm::Type* wide = Like(x, b_.getIntNTy(bits * 2));
    return is_signed ? b_.CreateSExt(x, wide) : b_.CreateZExt(x, wide);
  };
  const bool wide = row.variant == static_cast<int>(ptx::MulMode::kWide);
  switch (row.op) {
    case Op::kAdd:
      return b_.CreateAdd(v[0], v[1]);
    case Op::kSub:
      return b_.CreateSub(v[0], v[1]);
    case Op::kMul:
    case Op::kMad: {
      Value* product = wide ? b_.CreateMul(widened(v[0]), widened(v[1])) : b_.CreateMul(v[0], v[1]);
      return row.op == Op::kMad ? b_.CreateAdd(product, v[2]) : product;
    }
    case Op::kMin:
    case Op::kMax: {
      Value* less = is_signed ? b_.CreateICmpSLT(v[0], v[1]) : b_.CreateICmpULT(v[0], v[1]);
      return row.op == Op::kMin ? b_.CreateSelect(less, v[0], v[1])
                                : b_.CreateSelect(less, v[1], v[0]);
    }
    case Op::kAbs:
      return b_.CreateSelect(b_.CreateICmpSLT(v[0], Number(v[0], 0)), b_.CreateNeg(v[0]), v[0]);
    case Op::kNeg:
      return b_.CreateNeg(v[0]);
    case Op::kAnd:
      return b_.CreateAnd(v[0], v[1]);
    case Op::kOr:
      return b_.CreateOr(v[0], v[1]);
    case Op::kXor:
      return b_.CreateXor(v[0], v[1]);
    case Op::kNot:
      return b_.CreateNot(v[0]);
    case Op::kCnot:
      return b_.CreateZExt(b_.CreateICmpEQ(v[0], Number(v[0], 0)), v[0]->getType());
    case Op::kShl:
    case Op::kShr:
    case Op::kShf:
    case Op::kLop3:
      return ComputeBits(i, row, v);
    case Op::kPopc: {
      Value* count = b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, v[0]);
      return b_.CreateZExtOrTrunc(count, Like(count, b_.getInt32Ty()));
    }
    case Op::kClz: {
      Value* count = b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, v[0], b_.getFalse());
      return b_.CreateZExtOrTrunc(count, Like(count, b_.getInt32Ty()));
    }
    default:  // mov
      return v[0];
  }
}

// min and max: -0 < +0, and a NaN loses against a number.
Emitter::Value* Emitter::MinMax(Value* a, Value* b, bool max, llvm::Type* bits) {
  Value* bits_a = b_.CreateBitCast(a, bits);
  Value* bits_b = b_.CreateBitCast(b, bits);
  Value* equal = b_.CreateBitCast(max ? b_.CreateAnd(bits_a, bits_b) : b_.CreateOr(bits_a, bits_b),
                                  a->getType());
  Value* first = max ? b_.CreateFCmpOGT(a, b) : b_.CreateFCmpOLT(a, b);
  Value* best = b_.CreateSelect(b_.CreateFCmpOEQ(a, b), equal, b_.CreateSelect(first, a, b));
  Value* without_nan = b_.CreateSelect(b_.CreateFCmpUNO(b, b), a, best);
  return b_.CreateSelect(b_.CreateFCmpUNO(a, a), b, without_nan);
}

Emitter::Value* Emitter::DivApprox(Value* a, Value* b) {
  llvm::Type* type = a->getType();
  Value* size = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, b);
  Value* large = b_.CreateFCmpOGT(size, llvm::ConstantFP::get(type, 0x1p126));
  Value* infinity =
      b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, llvm::ConstantFP::getInfinity(type), b);
  return b_.CreateFDiv(a, b_.CreateSelect(large, infinity, b));
}

Emitter::Value* Emitter::ComputeFloat(const Row& row, const std::vector<Value*>& bits) {
  std::vector<Value*> v;
  for (Value* x : bits) v.push_back(AsFloat(x, row.type));
  llvm::Type* type = v[0]->getType();
  const uint64_t sign = row.type == Type::kF32 ? 0x8000'0000ull : 1ull << 63;
  Value* result = nullptr;
  switch (row.op) {
    case Op::kAdd:
      result = b_.CreateFAdd(v[0], v[1]);
      break;
    case Op::kSub:
      result = b_.CreateFSub(v[0], v[1]);
      break;
    case Op::kMul:
      result = b_.CreateFMul(v[0], v[1]);
      break;
    case Op::kDiv:
      result = row.variant == 0 ? b_.CreateFDiv(v[0], v[1]) : DivApprox(v[0], v[1]);
      break;
    case Op::kMad:
    case Op::kFma:
      result = b_.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {v[0], v[1], v[2]});
      break;
    case Op::kRcp:
      result = b_.CreateFDiv(llvm::ConstantFP::get(type, 1.0), v[0]);
      break;
    case Op::kSqrt:
      result = b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, v[0]);
      break;
    case Op::kRsqrt: {
      llvm::Type* wide = Like(v[0], b_.getDoubleTy());
      Value* x = row.type == Type::kF32 ? b_.CreateFPExt(v[0], wide) : v[0];
      Value* root = b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
      result = b_.CreateFDiv(llvm::ConstantFP::get(wide, 1.0), root);
      if (row.type == Type::kF32) result = b_.CreateFPTrunc(result, type);
      break;
    }
    case Op::kMin:
    case Op::kMax:
      result = MinMax(v[0], v[1], row.op == Op::kMax, bits[0]->getType());
      break;
    case Op::kAbs:
      return b_.CreateAnd(bits[0], Number(bits[0], ~sign));
    case Op::kNeg:
      return b_.CreateXor(bits[0], Number(bits[0], sign));
    case Op::kCopysign:
      return b_.CreateOr(b_.CreateAnd(bits[0], Number(bits[0], sign)),
                         b_.CreateAnd(bits[1], Number(bits[1], ~sign)));
    default:
      return bits[0];
  }
  return AsBits(CanonicalNan(result));
}

Emitter::Value* Emitter::ComputeInternal(const ProgramInst& i, const Row& row,
                                         const std::vector<Value*>& v) {
  switch (row.what) {
    case Internal::kBroadcast:
      return llvm::ConstantInt::get(b_.getIntNTy(std::max<uint32_t>(ptx::Bits(row.type), 16)),
                                    i.imm);
    case Internal::kFlush: {
      Value* tiny = b_.CreateICmpEQ(b_.CreateAnd(v[0], Number(v[0], 0x7f800000)), Number(v[0], 0));
      return b_.CreateSelect(tiny, b_.CreateAnd(v[0], Number(v[0], 0x80000000)), v[0]);
    }
    case Internal::kPack: {
      llvm::Type* whole = Like(v[0], b_.getIntNTy(ptx::Bits(row.type)));
      Value* high = b_.CreateZExt(v[1], whole);
      return b_.CreateOr(b_.CreateZExt(v[0], whole),
                         b_.CreateShl(high, Number(high, ptx::Bits(row.type) / 2)));
    }
    default:
      break;
  }
  Value* x = AsFloat(v[0], row.type);
  Value* zero = llvm::ConstantFP::get(x->getType(), 0.0);
  Value* positive = b_.CreateFCmpOGT(x, zero);
  if (row.what == Internal::kRelu) {
    Value* nan_or_zero = b_.CreateSelect(b_.CreateFCmpUNO(x, x), x, zero);
    return AsBits(b_.CreateSelect(positive, x, nan_or_zero));
  }
  Value* one = llvm::ConstantFP::get(x->getType(), 1.0);
  Value* capped = b_.CreateSelect(b_.CreateFCmpOLT(x, one), x, one);
  return AsBits(b_.CreateSelect(positive, capped, zero));
}

Emitter::Value* Emitter::Compute(const ProgramInst& i, const Row& row,
                                 const std::vector<Value*>& v) {
  if (row.internal) return ComputeInternal(i, row, v);
  if (row.op == Op::kCvt) return Convert(i, row, v[0]);
  if (row.op == Op::kSetp) return Compare(row, v[0], v[1]);
  if (row.op == Op::kSelp)
    return b_.CreateSelect(i.imm != 0 ? b_.CreateNot(v[2]) : v[2], v[0], v[1]);
  if (row.type == Type::kPred) return Predicates(i, row, v);
  if (row.type == Type::kF32 || row.type == Type::kF64) return ComputeFloat(row, v);
  return ComputeInteger(i, row, v);
}

// A widening of a linear value stays linear unless the narrow one wraps within the warp.
bool Emitter::KeepsLinear(uint32_t n, const Row& row, const std::vector<Value*>& v) {
  const Operands& o = flow_.operands[n];
  const bool wide = (row.op == Op::kMul || row.op == Op::kMad) &&
                    row.variant == static_cast<int>(ptx::MulMode::kWide);
  const bool extends = row.op == Op::kCvt && row.type == Type::kB64;
  if (!wide && !extends) return false;
  const bool is_signed = ptx::IsSigned(extends ? row.type2 : row.type);
  Value* wraps = b_.getFalse();
  for (size_t k = 0; k < 2 && k < o.sources.size(); ++k) {
    const Form form = flow_.FormOf(o.sources[k]);
    if (form.of != Form::Of::kLinear || (extends && k > 0)) continue;
    Value* last = Number(v[k], static_cast<uint64_t>(form.stride * (exec::kLanes - 1)));
    Value* sum = b_.CreateBinaryIntrinsic(
        is_signed ? llvm::Intrinsic::sadd_with_overflow : llvm::Intrinsic::uadd_with_overflow, v[k],
        last);
    wraps = b_.CreateOr(wraps, b_.CreateExtractValue(sum, 1));
  }
  llvm::BasicBlock* leave = NewBlock("wraps");
  llvm::BasicBlock* stay = NewBlock("linear");
  Expect(b_.CreateNot(wraps), stay, leave);
  b_.SetInsertPoint(leave);
  Leave(n);
  b_.SetInsertPoint(stay);
  return true;
}

void Emitter::EmitRow(uint32_t n) {
  const ProgramInst& i = flow_.program.code[n];
  const Row row = RowOf(i.key);
  const Operands& o = flow_.operands[n];
  const Form form = lane_by_lane_ != nullptr ? kUniformForm : flow_.ResultForm(n);
  const size_t sources = o.sources.size() - (i.guarded != 0 ? 1 : 0);
  std::vector<Value*> v;
  for (size_t k = 0; k < sources; ++k)
    v.push_back(form.Varies() ? ReadVector(o.sources[k]) : ReadScalar(o.sources[k]));
  if (form.of == Form::Of::kLinear) KeepsLinear(n, row, v);
  Value* guard = GuardOf(i);
  if (row.internal && row.what == Internal::kUnpack) {
    llvm::Type* half = Like(v[0], ScalarType(o.results[0].kind));
    Value* high = b_.CreateLShr(v[0], Number(v[0], half->getScalarSizeInBits()));
    Write(o.results[0], {b_.CreateTrunc(v[0], half), form}, guard);
    Write(o.results[1], {b_.CreateTrunc(high, half), form}, guard);
    return;
  }
  Write(o.results[0], {Compute(i, row, v), form}, guard);
}

void Emitter::EmitSpecial(uint32_t n) {
  const ProgramInst& i = flow_.program.code[n];
  const Special special = static_cast<Special>(i.imm);
  const uint32_t number = static_cast<uint32_t>(i.imm);
  Form form = flow_.ResultForm(n);
  Value* value = nullptr;
  if (special == Special::kLaneId) {
    value = b_.getInt32(0);
  } else if (special == Special::kWarpId) {
    value = LoadWarp(offsetof(Warp, index), b_.getInt32Ty());
  } else if (special <= Special::kTidZ) {
    llvm::Type* type = TypeOf(Kind::k32, form);
    const size_t offset = offsetof(Warp, tid) + number * sizeof Warp::tid[0];
    value = b_.CreateAlignedLoad(type, WarpField(offset, type), llvm::Align(4));
  } else {
    const uint32_t place = number - static_cast<uint32_t>(Special::kNtidX);
    value = LoadWarp(offsetof(Warp, place) + place * 4, b_.getInt32Ty());
  }
  Write({i.d, Kind::k32}, {value, form}, GuardOf(i));
}

void Emitter::EmitParameter(uint32_t n) {
  const ProgramInst& i = flow_.program.code[n];
  const Operands& o = flow_.operands[n];
  exec::MemoryShape shape;
  std::memcpy(&shape, &i.aux, sizeof shape);
  // What lies past the end is the handler's to name.
  const uint64_t end = i.imm + uint64_t{shape.vector} * shape.element_bytes;
  llvm::BasicBlock* past = NewBlock("past");
  llvm::BasicBlock* inside = NewBlock("inside");
  Value* have = LoadWarp(offsetof(Warp, parameter_bytes), b_.getInt64Ty());
  Expect(b_.CreateICmpULE(b_.getInt64(end), have), inside, past);
  b_.SetInsertPoint(past);
  Leave(n);
  b_.SetInsertPoint(inside);
  llvm::Type* element = b_.getIntNTy(shape.element_bytes * 8);
  Value* guard = GuardOf(i);
  for (uint32_t k = 0; k < shape.vector; ++k) {
    Value* at = Pointer(parameters_, i.imm + k * shape.element_bytes, element);
    Value* value = b_.CreateAlignedLoad(element, at, llvm::Align(1));
    llvm::Type* wanted = ScalarType(o.results[k].kind);
    value =
        shape.is_signed ? b_.CreateSExtOrTrunc(value, wanted) : b_.CreateZExtOrTrunc(value, wanted);
    Write(o.results[k], {value, kUniformForm}, guard);
  }
}

}  // namespace softgpu::jit
