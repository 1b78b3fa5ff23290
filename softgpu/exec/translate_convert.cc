// cvt, brought to the steps of simd/convert.cc.
#include "softgpu/exec/translate.h"

namespace softgpu::exec {

using ptx::Instruction;
using ptx::Operand;
using ptx::Rounding;

namespace {

constexpr int kGeneral = 200;

Type WidthType(uint32_t bytes) {
  return bytes == 2 ? Type::kB16 : bytes == 4 ? Type::kB32 : Type::kB64;
}

// 32- or 64-bit integer type that holds `type`.
Type Promoted(Type type) {
  const bool is_signed = ptx::IsSigned(type);
  if (ptx::Bits(type) == 64) return is_signed ? Type::kS64 : Type::kU64;
  return is_signed ? Type::kS32 : Type::kU32;
}

int IntegralMode(Rounding rounding) {
  switch (rounding) {
    case Rounding::kRzi:
      return 1;
    case Rounding::kRmi:
      return 2;
    case Rounding::kRpi:
      return 3;
    default:
      return 0;
  }
}

bool IsIntegral(Rounding rounding) {
  return rounding >= Rounding::kRni && rounding <= Rounding::kRpi;
}

// Of conversions to f16 and bf16.
int HalfMode(Rounding rounding) {
  switch (rounding) {
    case Rounding::kRz:
      return 1;
    case Rounding::kRm:
      return 2;
    case Rounding::kRp:
      return 3;
    default:
      return 0;
  }
}

bool IsHalf(Type type) { return type == Type::kF16 || type == Type::kBF16; }

bool IsPair(Type type) {
  return type == Type::kF16x2 || type == Type::kBF16x2 || type == Type::kE4M3x2 ||
         type == Type::kE5M2x2;
}

}  // namespace

void FunctionTranslator::ConvertInteger(uint32_t d, uint32_t d_bytes, Type to, uint32_t a,
                                        uint32_t a_bytes, Type from, bool saturate) {
  const uint32_t to_bits = ptx::Bits(to), from_bits = ptx::Bits(from);
  Handler fast = nullptr;
  if (!saturate && from_bits == a_bytes * 8 && to_bits == d_bytes * 8) {
    fast = a_bytes == d_bytes ? FindHandlerBySize(Op::kMov, WidthType(d_bytes))
                              : FindHandler(Key(Op::kCvt, WidthType(d_bytes), 0, from));
    if (fast == nullptr && d_bytes < a_bytes) {
      const Type wide = from_bits == 64 ? Type::kU64 : Type::kU32;
      fast = FindHandler(Key(Op::kCvt, WidthType(d_bytes), 0, wide));
    }
  }
  if (fast != nullptr) {
    Emit(fast, d, a);
    return;
  }
  const Handler general =
      FindHandler(Key(Op::kCvt, WidthType(d_bytes), kGeneral, WidthType(a_bytes)));
  Emit(general, d, a).imm = uint64_t{from_bits} | uint64_t{ptx::IsSigned(from)} << 8 |
                            uint64_t{to_bits} << 16 | uint64_t{ptx::IsSigned(to)} << 24 |
                            uint64_t{saturate} << 32;
}

// A source of f16, bf16 or a small integer as f32 (or the 32-bit integer); `*from` becomes its
// type.
uint32_t FunctionTranslator::ConvertToFloat(const Instruction& i, uint32_t a, uint32_t a_bytes,
                                            Type* from) {
  if (IsHalf(*from)) {
    if (a_bytes != 2) {
      const uint32_t narrow = Temp(2);
      ConvertInteger(narrow, 2, Type::kU16, a, a_bytes, Type::kU16, false);
      a = narrow;
    }
    const uint32_t wide = Temp(4);
    Emit(FindHandler(Key(Op::kCvt, Type::kF32, 0, *from)), wide, a);
    *from = Type::kF32;
    return wide;
  }
  const bool is_integer = !ptx::IsFloat(*from);
  if (is_integer && (ptx::Bits(*from) < 32 || a_bytes * 8 != ptx::Bits(*from))) {
    const Type promoted = Promoted(*from);
    const uint32_t wide = Temp(ptx::Bytes(promoted));
    ConvertInteger(wide, ptx::Bytes(promoted), promoted, a, a_bytes, *from, false);
    *from = promoted;
    return wide;
  }
  return a;
}

void FunctionTranslator::ConvertFloatToInteger(const Instruction& i, uint32_t a, Type from) {
  const Operand& to = Operands(i)[0];
  const uint32_t d_bytes = RegisterBytes(to, ptx::Bytes(i.type));
  const bool direct = ptx::Bits(i.type) >= 32 && d_bytes == ptx::Bytes(i.type);
  // Small types clamp from a signed 32-bit value: what is out of their range is out of its sign's.
  const Type step = ptx::Bits(i.type) >= 32 ? Promoted(i.type) : Type::kS32;
  const uint32_t value = direct ? Dest(to) : Temp(ptx::Bytes(step));
  Inst& out = Emit(FindHandler(Key(Op::kCvt, step, IntegralMode(i.rounding), from)), value, a);
  if (from == Type::kF32 && i.Has(ptx::kFtz)) SetRounding(&out, 0x1f80 | 0x8040);
  if (!direct) {
    ConvertInteger(Dest(to), d_bytes, i.type, value, ptx::Bytes(step), step,
                   ptx::Bits(i.type) < 32);
  }
}

void FunctionTranslator::ConvertFloatToFloat(const Instruction& i, uint32_t a, Type from) {
  const Operand& to = Operands(i)[0];
  const uint32_t d_bytes = RegisterBytes(to, ptx::Bytes(i.type));
  const uint32_t d = Dest(to);
  Type wanted = i.type;
  uint32_t mxcsr = Mxcsr(i);
  if (IsIntegral(i.rounding) && (from == Type::kF32 || from == Type::kF64)) {
    const uint32_t whole = Temp(ptx::Bytes(from));
    Inst& out =
        Emit(FindHandler(Key(Op::kCvt, from, 10 + IntegralMode(i.rounding), from)), whole, a);
    if (from == Type::kF32) SetRounding(&out, mxcsr);
    a = whole;
  }
  if (from != Type::kF32 && from != Type::kF64) {  // an integer
    const Type step = IsHalf(wanted) ? Type::kF64 : wanted;
    const uint32_t value = IsHalf(wanted) ? Temp(8) : d;
    Inst& out = Emit(FindHandler(Key(Op::kCvt, step, 0, from)), value, a);
    SetRounding(&out, IsHalf(wanted) ? 0 : mxcsr);
    a = value;
    from = step;
  } else if (from == wanted) {
    Emit(FindHandlerBySize(Op::kMov, wanted), d, a);
    if (i.Has(ptx::kFtz) && wanted == Type::kF32)
      Emit(FindHandler(Key(Internal::kFlush, wanted)), d, d);
  } else if (wanted == Type::kF64 || (wanted == Type::kF32 && from == Type::kF64)) {
    SetRounding(&Emit(FindHandler(Key(Op::kCvt, wanted, 0, from)), d, a), mxcsr);
  }
  if (wanted == Type::kTF32) {
    a = ReluBefore(i, a, Type::kF32);
    const int mode = i.rounding == Rounding::kRna ? 0 : i.rounding == Rounding::kRz ? 2 : 1;
    Emit(FindHandler(Key(Op::kCvt, wanted, mode, Type::kF32)), d, a);
    if (i.Has(ptx::kSatFinite)) Emit(FindHandler(Key(Internal::kFinite, wanted)), d, d);
  }
  if (IsHalf(wanted)) {
    if (from == Type::kF64) {
      const uint32_t odd = Temp(4);
      Emit(FindHandler(Key(Op::kCvt, Type::kF32, 4, Type::kF64)), odd, a);
      a = odd;
    }
    const uint32_t half = d_bytes == 2 ? d : Temp(2);
    Emit(FindHandler(Key(Op::kCvt, wanted, HalfMode(i.rounding), Type::kF32)), half, a);
    if (i.Has(ptx::kRelu)) Emit(FindHandler(Key(Internal::kRelu, wanted)), half, half);
    if (i.Has(ptx::kSat)) Emit(FindHandler(Key(Internal::kSaturate, wanted)), half, half);
    if (i.Has(ptx::kSatFinite)) Emit(FindHandler(Key(Internal::kFinite, wanted)), half, half);
    if (d_bytes != 2) ConvertInteger(d, d_bytes, Type::kU16, half, 2, Type::kU16, false);
    return;
  }
  if (i.Has(ptx::kSat)) Emit(FindHandler(Key(Internal::kSaturate, wanted)), d, d);
}

// .relu of formats that have no arithmetic of their own works on the source.
uint32_t FunctionTranslator::ReluBefore(const Instruction& i, uint32_t a, Type type) {
  if (!i.Has(ptx::kRelu)) return a;
  const uint32_t clamped = Temp(4);
  Emit(FindHandler(Key(Internal::kRelu, type)), clamped, a);
  return clamped;
}

void FunctionTranslator::ConvertPair(const Instruction& i) {
  const Operand* operands = Operands(i);
  uint32_t a = Source(operands[1], ptx::Bytes(i.type2));
  uint32_t b = i.count > 2 ? Source(operands[2], ptx::Bytes(i.type2)) : a;
  if (i.type == Type::kE4M3x2 || i.type == Type::kE5M2x2) {
    b = i.count > 2 ? ReluBefore(i, b, i.type2) : b;
    a = ReluBefore(i, a, i.type2);
  }
  const bool halves = i.type == Type::kF16x2 || i.type == Type::kBF16x2;
  const int mode = halves && i.rounding == Rounding::kRz ? 1 : 0;
  const uint32_t d = Dest(operands[0]);
  Emit(FindHandler(Key(Op::kCvt, i.type, mode, i.type2)), d, a, b);
  if (i.Has(ptx::kRelu) && halves) Emit(FindHandler(Key(Internal::kRelu, i.type)), d, d);
  if (i.Has(ptx::kSatFinite) && halves) Emit(FindHandler(Key(Internal::kFinite, i.type)), d, d);
}

void FunctionTranslator::Convert(const Instruction& i) {
  if (IsPair(i.type) || IsPair(i.type2)) return ConvertPair(i);
  const Operand& to = Operands(i)[0];
  const Operand& operand = Operands(i)[1];
  Type from = i.type2;
  uint32_t a_bytes = RegisterBytes(operand, ptx::Bytes(from));
  uint32_t a = Source(operand, a_bytes);
  const bool to_float = ptx::IsFloat(i.type), from_float = ptx::IsFloat(from);
  if (!to_float && !from_float) {
    const bool saturate = i.Has(ptx::kSat);
    ConvertInteger(Dest(to), RegisterBytes(to, ptx::Bytes(i.type)), i.type, a, a_bytes, from,
                   saturate);
    return;
  }
  a = ConvertToFloat(i, a, a_bytes, &from);
  if (!to_float) return ConvertFloatToInteger(i, a, from);
  ConvertFloatToFloat(i, a, from);
}

}  // namespace softgpu::exec
