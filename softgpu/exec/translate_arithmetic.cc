// Arithmetic, logic and comparisons: rows of the vector tables, found by opcode, type and variant.
#include "softgpu/exec/translate.h"
#include "softgpu/ptx/instruction_table.h"

namespace softgpu::exec {

using ptx::Instruction;
using ptx::MulMode;
using ptx::Operand;

namespace {

constexpr int kSatVariant = 8;

int VariantOf(const Instruction& i) {
  const bool is_float = ptx::IsFloat(i.type);
  const bool sat = i.Has(ptx::kSat) && !is_float;
  switch (i.op) {
    case Op::kAdd:
    case Op::kSub:
      return sat ? kSatVariant : 0;
    case Op::kMul:
    case Op::kMad:
      return is_float ? 0 : i.mode + (sat ? kSatVariant : 0);
    case Op::kMad24:
      return i.mode + (sat ? kSatVariant : 0);
    case Op::kBmsk:
    case Op::kSzext:
      return i.Has(ptx::kWrap) ? 1 : 0;
    case Op::kMul24:
    case Op::kDp2a:
    case Op::kPrmt:
      return i.mode;
    case Op::kShf:
      return i.mode + (i.Has(ptx::kWrap) ? 2 : 0);
    case Op::kMin:
    case Op::kMax:
      return (i.Has(ptx::kNanResult) ? 1 : 0) + (i.Has(ptx::kXorsign) ? 2 : 0);
    case Op::kFma:
      return i.Has(ptx::kRelu) ? 1 : 0;
    case Op::kDiv:
      return i.type == Type::kF32 && i.Has(ptx::kApprox) ? 1 : 0;
    case Op::kRcp:
    case Op::kRsqrt:
      return i.type == Type::kF64 && i.Has(ptx::kApprox) && i.Has(ptx::kFtz) ? 1 : 0;
    default:
      return 0;
  }
}

Handler HandlerOf(const Instruction& i) {
  const int variant = VariantOf(i);
  if (i.op == Op::kDp4a || i.op == Op::kDp2a)
    return FindHandler(Key(i.op, i.type, variant, i.type2));
  if (i.op == Op::kSlct) {
    const uint32_t bits = ptx::Bits(i.type);
    const Type size = bits == 16 ? Type::kU16 : bits == 32 ? Type::kU32 : Type::kU64;
    return FindHandler(Key(i.op, size, 0, i.type2));
  }
  return FindHandlerBySize(i.op, i.type, variant);
}

// Instructions that work on the image of a number and so do not see MXCSR.
bool FlushesAfterwards(const Instruction& i) {
  const bool on_bits = i.op == Op::kMin || i.op == Op::kMax || i.op == Op::kAbs || i.op == Op::kNeg;
  return i.Has(ptx::kFtz) &&
         ((on_bits && i.type == Type::kF32) || i.type == Type::kF16 || i.type == Type::kF16x2);
}

uint32_t BytesOf(char letter, const Instruction& i) {
  const bool wide = i.Has(ptx::kHasMode) && static_cast<MulMode>(i.mode) == MulMode::kWide &&
                    (i.op == Op::kMul || i.op == Op::kMad);
  switch (letter) {
    case 'S':
      return ptx::Bytes(i.type2);
    case 'W':
      return ptx::Bytes(i.type) * (wide ? 2 : 1);
    case 'u':
      return 4;
    case 'q':
      return 8;
    default:
      return ptx::Bytes(i.type);
  }
}

}  // namespace

// Two numbers in each register: the f32 instruction, twice.
void FunctionTranslator::OfPairs(const Instruction& i) {
  const Operand* operands = Operands(i);
  uint32_t low[3] = {}, high[3] = {};
  for (uint32_t k = 0; k + 1 < i.count; ++k) {
    low[k] = Temp(4);
    high[k] = Temp(4);
    Emit(FindHandler(Key(Internal::kUnpack, Type::kB64)), low[k], Source(operands[k + 1], 8),
         high[k]);
  }
  for (const uint32_t* half : {low, high}) {
    SetRounding(&Emit(FindHandler(Key(i.op, Type::kF32)), half[0], half[0], half[1], half[2]),
                Mxcsr(i));
  }
  Emit(FindHandler(Key(Internal::kPack, Type::kB64)), Dest(operands[0]), low[0], high[0]);
}

// min and max of three: of two, and of that and the third.
void FunctionTranslator::OfThree(const Instruction& i) {
  const Operand* operands = Operands(i);
  const uint32_t c = Source(operands[3], 4), two = Temp(4);
  Instruction first = i;
  first.count = 3;
  Arithmetic(first, two);
  const uint32_t d = Dest(operands[0]);
  Emit(HandlerOf(i), d, two, c);
  if (FlushesAfterwards(i)) Emit(FindHandler(Key(Internal::kFlush, i.type)), d, d);
}

void FunctionTranslator::Arithmetic(const Instruction& i) {
  if (i.type == Type::kF32x2) return OfPairs(i);
  if (i.count == 4 && (i.op == Op::kMin || i.op == Op::kMax)) return OfThree(i);
  Arithmetic(i, Dest(Operands(i)[0]));
}

void FunctionTranslator::Arithmetic(const Instruction& i, uint32_t d) {
  const Operand* operands = Operands(i);
  const std::string_view signature = ptx::RowOf(i.op).signature;
  Inst inst;
  uint32_t* const fields[] = {&inst.a, &inst.b, &inst.c, &inst.e};
  uint32_t at = 0;
  if (i.op == Op::kBfind) inst.imm = i.Has(ptx::kShiftAmount);
  if (i.op == Op::kTestp) inst.imm = i.mode;
  for (char letter : signature.substr(signature.find('=') + 1)) {
    if (letter == '[' || letter == ']' || at + 1 >= i.count) continue;
    const Operand& operand = operands[at + 1];
    const bool predicate = letter == 'p' || (letter == 'T' && i.type == Type::kPred);
    if (letter == 'i') {
      inst.imm = operand.bits;
    } else if (predicate) {
      const uint64_t all = operand.bits != 0 ? kFullMask : 0;
      *fields[at] =
          operand.kind == Operand::Kind::kRegister ? offset_of_[operand.index] : Constant(4, all);
      if (operand.negated) inst.imm |= letter == 'p' ? 1 : 1u << at;
    } else {
      *fields[at] = Source(operand, BytesOf(letter, i));
    }
    ++at;
  }
  Inst& out = Emit(HandlerOf(i), d, inst.a, inst.b, inst.c);
  out.e = inst.e;
  out.imm = inst.imm;
  if (i.type == Type::kF32 || (i.type == Type::kF64 && i.rounding != ptx::Rounding::kNone)) {
    SetRounding(&out, Mxcsr(i));
  }
  if (i.Has(ptx::kSat) && ptx::IsFloat(i.type)) {
    Emit(FindHandler(Key(Internal::kSaturate, i.type)), d, d);
  }
  if (i.Has(ptx::kRelu) && i.op != Op::kFma) Emit(FindHandler(Key(Internal::kRelu, i.type)), d, d);
  if (FlushesAfterwards(i)) Emit(FindHandler(Key(Internal::kFlush, i.type)), d, d);
}

// add.cc, addc, and their kin: aux bit 0 reads the flag, bit 1 writes it.
void FunctionTranslator::Carry(const Instruction& i) {
  const Operand* operands = Operands(i);
  const uint32_t bytes = ptx::Bytes(i.type);
  const bool reads = i.op == Op::kAddc || i.op == Op::kSubc || i.op == Op::kMadc;
  Op op = i.op;
  if (op == Op::kAdd) op = Op::kAddc;
  if (op == Op::kSub) op = Op::kSubc;
  if (op == Op::kMad) op = Op::kMadc;
  const uint32_t a = Source(operands[1], bytes), b = Source(operands[2], bytes);
  const uint32_t c = i.count > 3 ? Source(operands[3], bytes) : a;
  Inst& out =
      Emit(FindHandlerBySize(op, i.type, op == Op::kMadc ? i.mode : 0), Dest(operands[0]), a, b, c);
  out.e = carry_;
  out.aux = (reads ? 1 : 0) | (i.Has(ptx::kCarryOut) ? 2 : 0);
}

// lop3.and and lop3.or: the second result is (d != 0) combined with a predicate.
void FunctionTranslator::Logic3(const Instruction& i) {
  const Operand* operands = Operands(i);
  const uint32_t value = Temp(4), test = Temp(4), combined = Temp(4);
  Emit(FindHandlerBySize(Op::kLop3, i.type), value, Source(operands[1], 4), Source(operands[2], 4),
       Source(operands[3], 4))
      .imm = operands[4].bits;
  Emit(FindHandlerBySize(Op::kSetp, Type::kU32, static_cast<int>(ptx::Compare::kNe)), test, value,
       Constant(4, 0));
  const Operand& p = operands[5];
  const uint32_t other = p.kind == Operand::Kind::kRegister
                             ? offset_of_[p.index]
                             : Constant(4, p.bits != 0 ? kFullMask : 0);
  const Op op = i.combine == ptx::Combine::kAnd ? Op::kAnd : Op::kOr;
  Emit(FindHandler(Key(op, Type::kPred)), combined, test, other).imm = p.negated ? 2 : 0;
  Emit(FindHandlerBySize(Op::kMov, Type::kU32), Dest(operands[0]), value);
  if (operands[0].second != ptx::kNoIndex) {
    Emit(FindHandler(Key(Op::kMov, Type::kPred)), offset_of_[operands[0].second], combined);
  }
}

// One comparison into the predicate `d`. `half` 1: the upper halves of packed operands.
void FunctionTranslator::Compare(const Instruction& i, uint32_t d, int half) {
  using C = ptx::Compare;
  const Type type = i.op == Op::kSet ? i.type2 : i.type;
  const Operand* operands = Operands(i);
  uint32_t a = Source(operands[1], ptx::Bytes(type));
  uint32_t b = Source(operands[2], ptx::Bytes(type));
  C compare = static_cast<C>(i.mode);
  switch (compare) {
    case C::kLo:
      compare = C::kLt;
      break;
    case C::kLs:
      compare = C::kLe;
      break;
    case C::kHi:
      compare = C::kGt;
      break;
    case C::kHs:
      compare = C::kGe;
      break;
    default:
      break;
  }
  bool swap = true;
  switch (compare) {
    case C::kGt:
      compare = C::kLt;
      break;
    case C::kGe:
      compare = C::kLe;
      break;
    case C::kGtu:
      compare = C::kLtu;
      break;
    case C::kGeu:
      compare = C::kLeu;
      break;
    default:
      swap = false;
  }
  if (swap) std::swap(a, b);
  Inst& out =
      Emit(FindHandlerBySize(Op::kSetp, type, static_cast<int>(compare) + 32 * half), d, a, b);
  if (type == Type::kF32) SetRounding(&out, Mxcsr(i));
}

// d = result (or its complement), combined with the instruction's predicate.
void FunctionTranslator::CombineWith(const Instruction& i, uint32_t d, uint32_t result,
                                     bool negated) {
  const Operand* operands = Operands(i);
  Op op = Op::kMov;
  if (i.combine == ptx::Combine::kAnd) op = Op::kAnd;
  if (i.combine == ptx::Combine::kOr) op = Op::kOr;
  if (i.combine == ptx::Combine::kXor) op = Op::kXor;
  uint32_t c = 0;
  uint64_t negations = negated ? 1 : 0;
  if (i.count > 3) {
    const uint64_t all = operands[3].bits != 0 ? kFullMask : 0;
    c = operands[3].kind == Operand::Kind::kRegister ? offset_of_[operands[3].index]
                                                     : Constant(4, all);
    if (operands[3].negated) negations |= 2;
  }
  Emit(FindHandler(Key(op, Type::kPred)), d, result, c).imm = negations;
}

void FunctionTranslator::SetPredicate(const Instruction& i) {
  const Operand& to = Operands(i)[0];
  const bool packed = i.type == Type::kF16x2 || i.type == Type::kBF16x2;
  const bool plain = i.combine == ptx::Combine::kNone && i.count == 3;
  if (plain && !packed && to.second == ptx::kNoIndex) return Compare(i, Dest(to), 0);
  // The second result may be the first's source: work it out before either is written.
  const uint32_t low = Temp(4), first = Temp(4), second = Temp(4);
  Compare(i, low, 0);
  CombineWith(i, first, low, false);
  if (to.second != ptx::kNoIndex) {
    if (packed) Compare(i, low, 1);
    CombineWith(i, second, low, !packed);
  }
  const Handler move = FindHandler(Key(Op::kMov, Type::kPred));
  // The guard may be among the results, so it is written last and only once.
  const bool first_is_guard = guarded_ && Dest(to) == (guard_ & ~1u);
  if (!first_is_guard) Emit(move, Dest(to), first);
  if (to.second != ptx::kNoIndex) Emit(move, offset_of_[to.second], second);
  if (first_is_guard) Emit(move, Dest(to), first);
}

void FunctionTranslator::SetValue(const Instruction& i) {
  uint64_t yes = ~0ull;
  if (i.type == Type::kF32) yes = 0x3f800000;
  if (i.type == Type::kF16) yes = 0x3c00;
  if (i.type == Type::kBF16) yes = 0x3f80;
  const uint32_t d = Dest(Operands(i)[0]);
  const uint32_t test = Temp(4), combined = Temp(4);
  Compare(i, test, 0);
  CombineWith(i, combined, test, false);
  const bool packed = i.type2 == Type::kF16x2 || i.type2 == Type::kBF16x2;
  if (!packed) {
    const uint32_t bytes = ptx::Bytes(i.type);
    const uint64_t keep = bytes == 2 ? 0xffff : 0xffffffff;
    Emit(FindHandlerBySize(Op::kSelp, i.type), d, Constant(bytes, yes & keep), Constant(bytes, 0),
         combined);
    return;
  }
  const uint64_t one = i.type == Type::kF16x2 ? 0x3c00 : i.type == Type::kBF16x2 ? 0x3f80 : 0xffff;
  const uint32_t low = Temp(4), high = Temp(4);
  const Handler select = FindHandlerBySize(Op::kSelp, Type::kU32);
  Emit(select, low, Constant(4, one), Constant(4, 0), combined);
  Compare(i, test, 1);
  CombineWith(i, combined, test, false);
  Emit(select, high, Constant(4, one << 16), Constant(4, 0), combined);
  Emit(FindHandlerBySize(Op::kOr, Type::kB32), d, low, high);
}

}  // namespace softgpu::exec
