#include "softgpu/ptx/check_modes.h"

namespace softgpu::ptx {
namespace {

bool IsHalf(Type type) {
  return type == Type::kF16 || type == Type::kBF16 || type == Type::kF16x2 || type == Type::kBF16x2;
}

bool IsBits(Type type) { return type >= Type::kB8 && type <= Type::kB128; }

bool IsUnsigned(Type type) { return type >= Type::kU8 && type <= Type::kU64; }

bool IsWord(Type type) {
  return type == Type::kU32 || type == Type::kS32 || type == Type::kU64 || type == Type::kS64;
}

bool IsDirected(Rounding rounding) {
  return rounding >= Rounding::kRn && rounding <= Rounding::kRp;
}

bool IsIntegral(Rounding rounding) { return rounding >= Rounding::kRni; }

MulMode MulModeOf(const Instruction& i) {
  return i.Has(kHasMode) ? static_cast<MulMode>(i.mode) : MulMode::kNone;
}

bool CompareFits(const Instruction& i, Type type) {
  if (!i.Has(kHasMode)) return false;
  const Compare compare = static_cast<Compare>(i.mode);
  const bool sized = compare >= Compare::kLo && compare <= Compare::kHs;
  const bool unordered = compare >= Compare::kEqu;
  if (i.Has(kFtz) && type != Type::kF32 && type != Type::kF16 && type != Type::kF16x2) return false;
  if (IsFloat(type)) return !sized;
  if (unordered) return false;
  if (IsBits(type)) return compare == Compare::kEq || compare == Compare::kNe;
  return !sized || IsUnsigned(type);
}

// .v2, .v4, .v8 of atom and red: up to 16 bytes of floats in global memory.
bool AtomVectorFits(const Instruction& i, AtomOp op) {
  const uint32_t bits = i.vector * Bits(i.type);
  const bool global = i.space == Space::kGlobal || i.space == Space::kGeneric;
  if (!global || bits > 128 || !IsFloat(i.type) || i.type == Type::kF64) return false;
  return op == AtomOp::kAdd || (IsHalf(i.type) && (op == AtomOp::kMin || op == AtomOp::kMax));
}

bool AtomFits(const Instruction& i) {
  if (!i.Has(kHasMode)) return false;
  const AtomOp op = static_cast<AtomOp>(i.mode);
  const Type type = i.type;
  if (i.vector > 1) return i.count == (i.op == Op::kAtom ? 3u : 2u) && AtomVectorFits(i, op);
  if (type == Type::kB128 && op != AtomOp::kCas && op != AtomOp::kExch) return false;
  if (i.op == Op::kRed && (op == AtomOp::kCas || op == AtomOp::kExch)) return false;
  if ((op == AtomOp::kCas) != (i.count == (i.op == Op::kAtom ? 4u : 3u))) return false;
  switch (op) {
    case AtomOp::kAnd:
    case AtomOp::kOr:
    case AtomOp::kXor:
      return type == Type::kB32 || type == Type::kB64;
    case AtomOp::kAdd:
      return type == Type::kU32 || type == Type::kS32 || type == Type::kU64 || type == Type::kS64 ||
             IsFloat(type);
    case AtomOp::kInc:
    case AtomOp::kDec:
      return type == Type::kU32;
    case AtomOp::kMin:
    case AtomOp::kMax:
      return IsWord(type);
    case AtomOp::kCas:
      return IsBits(type) || IsWord(type);
    case AtomOp::kExch:
      return (IsBits(type) && type != Type::kB16) || IsWord(type) || type == Type::kF32 ||
             type == Type::kF64;
  }
  return false;
}

// st.async, red.async and cp.reduce.async.bulk: as what they do at once.
bool AsyncFits(const Instruction& i) {
  if (i.op == Op::kStAsync) return i.Has(kSync) == (i.count == 3) && i.vector * Bits(i.type) <= 128;
  if (i.op == Op::kRedAsync && i.Has(kSync) != (i.count == 3)) return false;
  Instruction red = i;
  red.op = Op::kRed;
  red.count = 2;
  const AtomOp op = static_cast<AtomOp>(i.mode);
  const bool half = i.type == Type::kF16 || i.type == Type::kBF16;
  return AtomFits(red) || (half && (op == AtomOp::kMin || op == AtomOp::kMax));
}

bool ReduxFits(const Instruction& i) {
  if (!i.Has(kHasMode) || i.Has(kXorsign)) return false;
  const AtomOp op = static_cast<AtomOp>(i.mode);
  if (i.type == Type::kF32) return op == AtomOp::kMin || op == AtomOp::kMax;
  if (i.Has(kNanResult) || i.Has(kAbsolute)) return false;
  if (op <= AtomOp::kXor) return i.type == Type::kB32;
  return i.type != Type::kB32 && (op == AtomOp::kAdd || op == AtomOp::kMin || op == AtomOp::kMax);
}

bool PackFits(const Instruction& i) {
  const bool wide = i.type == Type::kU16 || i.type == Type::kS16;
  return i.Has(kSat) && i.type2 == Type::kS32 && (i.type3 == Type::kB32) == !wide &&
         i.count == (wide ? 3 : 4);
}

bool ConvertFits(const Instruction& i) {
  if (i.type2 == Type::kNone) return false;
  const bool finite = i.Has(kSatFinite);
  const bool to_float = IsFloat(i.type), from_float = IsFloat(i.type2);
  const bool packs = i.type == Type::kF16x2 || i.type == Type::kBF16x2;
  const bool fp8 = i.type == Type::kE4M3x2 || i.type == Type::kE5M2x2;
  const bool from_fp8 = i.type2 == Type::kE4M3x2 || i.type2 == Type::kE5M2x2;
  const bool from_pair = i.type2 == Type::kF16x2 || i.type2 == Type::kBF16x2;
  if (i.type == Type::kTF32 || i.type2 == Type::kTF32) {
    return i.type2 == Type::kF32 && i.count == 2 && !i.Has(kSat) && !i.Has(kFtz) &&
           ((i.rounding == Rounding::kRna && !i.Has(kRelu)) || i.rounding == Rounding::kRn ||
            i.rounding == Rounding::kRz);
  }
  if (i.rounding == Rounding::kRna) return false;
  if (from_fp8) {
    return i.type == Type::kF16x2 && i.count == 2 && i.rounding == Rounding::kRn && !i.Has(kSat) &&
           !i.Has(kFtz) && !finite;
  }
  if (fp8) {
    if (i.Has(kSat) || i.rounding != Rounding::kRn) return false;
    return (i.type2 == Type::kF32 && i.count == 3) || (i.type2 == Type::kF16x2 && i.count == 2);
  }
  if (packs) {
    return i.type2 == Type::kF32 && i.count == 3 && !i.Has(kSat) && !i.Has(kFtz) &&
           (i.rounding == Rounding::kRn || i.rounding == Rounding::kRz);
  }
  if (from_pair || i.count != 2) return false;
  const bool half = i.type == Type::kF16 || i.type == Type::kBF16;
  if (finite && (!half || i.type2 != Type::kF32 || i.Has(kSat))) return false;
  if (i.Has(kRelu) && !half) return false;
  if (i.Has(kFtz) && i.type != Type::kF32 && i.type2 != Type::kF32) return false;
  if (!to_float && !from_float) return i.rounding == Rounding::kNone;
  if (!to_float) return IsIntegral(i.rounding);
  if (!from_float) return IsDirected(i.rounding) && !i.Has(kRelu);
  const bool widens = Bits(i.type) > Bits(i.type2) || i.type == i.type2;
  if (widens) return !IsDirected(i.rounding);
  return IsDirected(i.rounding);
}

// At most 16 bytes; 32 as .v8 of 32 bits or .v4 of 64, in global memory.
bool VectorFits(const Instruction& i) {
  const uint32_t bits = i.vector * Bits(i.type);
  if (i.vector == 8 && Bits(i.type) != 32) return false;
  const bool global = i.space == Space::kGlobal || i.space == Space::kGeneric;
  return bits <= 128 || (bits == 256 && i.vector >= 4 && global && i.op != Op::kLdu);
}

// A second operation, or a destination that is merged, takes a third operand; vmad always has one.
bool VideoFits(const Instruction& i) {
  if (i.op == Op::kVmad || i.op >= Op::kVadd2) return !i.Has(kPlusOne) || !i.Has(kSat);
  return i.combine == Combine::kNone || i.count == 4;
}

// add, mul, fma, div and the like.
bool ArithmeticFits(const Instruction& i) {
  const bool is_float = IsFloat(i.type), half = IsHalf(i.type);
  if (i.rounding != Rounding::kNone) {
    if (!is_float || !IsDirected(i.rounding) || (half && i.rounding != Rounding::kRn)) return false;
  }
  const bool rough_f64 = i.Has(kApprox) && (i.op == Op::kRcp || i.op == Op::kRsqrt);
  const bool flushes = i.type == Type::kF32 || i.type == Type::kF16 || i.type == Type::kF16x2 ||
                       i.type == Type::kF32x2 || (i.type == Type::kF64 && rough_f64) ||
                       (i.op == Op::kEx2 && half);
  if (i.Has(kFtz) && !flushes) return false;
  if ((i.Has(kApprox) || i.Has(kFull)) && (!is_float || (i.type == Type::kF64 && !rough_f64)))
    return false;
  if (i.Has(kSat)) {
    const bool saturating_int = i.type == Type::kS32 && !i.Has(kCarryOut) &&
                                (i.op == Op::kAdd || i.op == Op::kSub ||
                                 (i.op == Op::kMad && MulModeOf(i) == MulMode::kHi));
    if (!saturating_int && i.type != Type::kF32 && i.type != Type::kF16 && i.type != Type::kF16x2) {
      return false;
    }
  }
  if (i.Has(kSatFinite)) return false;
  if (i.Has(kCarryOut) && (!IsWord(i.type) || MulModeOf(i) == MulMode::kWide)) return false;
  const bool clamps_integer = i.type == Type::kS32 || i.type == Type::kS16x2;
  if (i.Has(kRelu) && !half && !(clamps_integer && (i.op == Op::kMin || i.op == Op::kMax)))
    return false;
  if (i.Has(kRelu) && i.Has(kSat)) return false;
  if (i.Has(kXorsign) != i.Has(kAbsolute)) return false;
  if (i.Has(kXorsign) && ((i.type != Type::kF32 && !half) || i.Has(kRelu))) return false;
  if (i.Has(kNanResult) && i.type != Type::kF32 && !half) return false;
  const bool of_three = i.count == 4 && (i.op == Op::kMin || i.op == Op::kMax);
  return !of_three || (i.type == Type::kF32 && !i.Has(kXorsign));
}

}  // namespace

bool ModifiersFit(const Instruction& i) {
  const MulMode mul = MulModeOf(i);
  switch (i.op) {
    case Op::kSetp:
      return CompareFits(i, i.type);
    case Op::kSet: {
      const bool packed = i.type2 == Type::kF16x2 || i.type2 == Type::kBF16x2;
      const bool packed_result = i.type == Type::kF16x2 || i.type == Type::kBF16x2;
      return i.type2 != Type::kNone && CompareFits(i, i.type2) && (packed || !packed_result);
    }
    case Op::kAtom:
    case Op::kRed:
      return AtomFits(i);
    case Op::kStAsync:
    case Op::kRedAsync:
    case Op::kCpReduceBulk:
      return AsyncFits(i);
    case Op::kRedux:
      return ReduxFits(i);
    case Op::kShfl:
    case Op::kShf:
    case Op::kTestp:
      return i.Has(kHasMode);
    case Op::kMul:
    case Op::kMad:
      if (IsFloat(i.type) ? i.Has(kHasMode) : mul == MulMode::kNone) return false;
      if (mul == MulMode::kWide && Bits(i.type) == 64) return false;
      return ArithmeticFits(i);
    case Op::kMadc:
      return mul == MulMode::kLo || mul == MulMode::kHi;
    case Op::kMul24:
    case Op::kMad24:
      return (mul == MulMode::kLo && !i.Has(kSat)) ||
             (mul == MulMode::kHi && (!i.Has(kSat) || i.type == Type::kS32));
    case Op::kLop3:
      return i.combine == Combine::kNone
                 ? i.count == 5
                 : i.count == 6 && (i.combine == Combine::kAnd || i.combine == Combine::kOr);
    case Op::kCvtPack:
      return PackFits(i);
    case Op::kBarrierCluster:
      return i.Has(kHasMode);
    case Op::kDp2a:
      return i.type2 != Type::kNone && (mul == MulMode::kLo || mul == MulMode::kHi);
    case Op::kSlct:
      return i.type2 != Type::kNone && (!i.Has(kFtz) || i.type2 == Type::kF32);
    case Op::kDp4a:
      return i.type2 != Type::kNone;
    case Op::kCvt:
      return ConvertFits(i);
    case Op::kMbarrierArrive:
    case Op::kMbarrierArriveDrop:
      return !i.Has(kExpectTx) || i.count == 3;
    case Op::kLd:
    case Op::kLdu:
    case Op::kSt:
      return VectorFits(i);
    case Op::kVset:
    case Op::kVset2:
    case Op::kVset4:
      return i.type2 != Type::kNone && CompareFits(i, i.type) && VideoFits(i);
    default:
      if (i.op >= Op::kMma && i.op <= Op::kWmmaMma) return true;  // CheckMatrix()
      if (i.op >= Op::kVadd && i.op <= Op::kVset4) return i.type3 != Type::kNone && VideoFits(i);
      return ArithmeticFits(i);
  }
}

}  // namespace softgpu::ptx
