// mov and cvta: copies, packing, addresses, special registers.
#include "softgpu/exec/translate.h"

namespace softgpu::exec {

using ptx::Instruction;
using ptx::Operand;
using ptx::Space;
using ptx::Symbol;

void FunctionTranslator::Move(const Instruction& i) {
  const Operand& to = Operands(i)[0];
  const Operand& from = Operands(i)[1];
  if (i.type == Type::kPred) {
    const uint64_t all = from.bits != 0 ? kFullMask : 0;
    const uint32_t a =
        from.kind == Operand::Kind::kRegister ? offset_of_[from.index] : Constant(4, all);
    Emit(FindHandler(Key(Op::kMov, Type::kPred)), Dest(to), a).imm = from.negated ? 1 : 0;
    return;
  }
  if (to.kind == Operand::Kind::kVector || from.kind == Operand::Kind::kVector)
    return MoveVector(i);
  switch (from.kind) {
    case Operand::Kind::kSymbol:
      return MoveSymbol(i);
    case Operand::Kind::kSpecial:
      return MoveSpecial(i);
    case Operand::Kind::kFunction:
      Emit(FindHandler(Key(Internal::kBroadcast, Type::kU64)), Dest(to)).imm =
          ptx::kFunctionWindow + 16ull * from.index;
      return;
    case Operand::Kind::kImmediate: {
      const uint32_t bits = ptx::Bits(i.type);
      const Type size = bits == 16 ? Type::kU16 : bits == 32 ? Type::kU32 : Type::kU64;
      Emit(FindHandler(Key(Internal::kBroadcast, size)), Dest(to)).imm = from.bits;
      return;
    }
    default:
      break;
  }
  if (i.type == Type::kB128) {
    const uint32_t low = Temp(8), high = Temp(8);
    Inst& split = Emit(Unpack, low, Source(from, 16), high);
    split.aux = 64 | 16 << 8 | 2 << 16;
    split.imm = 0x88;
    Inst& join = Emit(Pack, Dest(to), low, high);
    join.aux = 64 | 16 << 8 | 2 << 16;
    join.imm = 0x88;
    return;
  }
  Emit(FindHandlerBySize(Op::kMov, i.type), Dest(to), Source(from, ptx::Bytes(i.type)));
}

void FunctionTranslator::MoveVector(const Instruction& i) {
  const Operand& to = Operands(i)[0];
  const Operand& from = Operands(i)[1];
  const bool unpacks = to.kind == Operand::Kind::kVector;
  const Operand& vector = unpacks ? to : from;
  const uint32_t bits = ptx::Bits(i.type) / vector.count;
  uint32_t elements[4] = {};
  uint64_t widths = 0;
  for (uint32_t k = 0; k < vector.count; ++k) {
    const Operand& element = f_.operands[vector.index + k];
    const uint32_t bytes = RegisterBytes(element, bits / 8);
    elements[k] = unpacks ? Dest(element) : Source(element, bytes);
    widths |= uint64_t{bytes} << (4 * k);
  }
  const uint32_t bytes = ptx::Bytes(i.type);
  Handler fast = nullptr;
  if (vector.count == 2 && widths == (bits / 8) * 0x11u) {
    fast = FindHandler(
        Key(unpacks ? Internal::kUnpack : Internal::kPack, i.type == Type::kB128 ? Type::kB128
                                                           : bits == 16          ? Type::kB32
                                                                                 : Type::kB64));
  }
  Inst& inst = unpacks ? Emit(fast != nullptr ? fast : Unpack, elements[0], Source(from, bytes),
                              elements[1], elements[2])
                       : Emit(fast != nullptr ? fast : Pack, Dest(to), elements[0], elements[1],
                              elements[2]);
  inst.e = elements[3];
  inst.aux = bits | bytes << 8 | vector.count << 16;
  inst.imm = widths;
}

// The address of a variable in its own space, as 64 bits.
uint32_t FunctionTranslator::SymbolAddress(const Operand& operand) {
  const Symbol& symbol = SymbolOf(operand);
  if (symbol.space == Space::kShared) {
    const ptx::Function* owner = operand.module_scope ? nullptr : &f_;
    return Constant(8, kernel_->kernel->SharedOffset(owner, operand.index) + operand.bits);
  }
  if (symbol.variable != ptx::kNoIndex) return Constant(8, operand.bits, symbol.variable);
  const bool kernel_param =
      f_.entry && !operand.module_scope && operand.index < f_.parameters.size();
  if (f_.entry || kernel_param) return Constant(8, symbol.offset + operand.bits);
  const uint32_t address = Temp(8);
  Emit(LocalAddress, address).imm = symbol.offset + operand.bits;
  return address;
}

void FunctionTranslator::MoveSymbol(const Instruction& i) {
  const Operand* operands = Operands(i);
  const uint32_t address = SymbolAddress(operands[1]);
  if (ptx::Bits(i.type) == 32) {
    Emit(FindHandler(Key(Op::kCvt, Type::kB32, 0, Type::kU64)), Dest(operands[0]), address);
  } else {
    Emit(FindHandlerBySize(Op::kMov, Type::kU64), Dest(operands[0]), address);
  }
}

void FunctionTranslator::MoveSpecial(const Instruction& i) {
  const Operand* operands = Operands(i);
  const uint32_t d = Dest(operands[0]);
  const uint32_t have = ptx::Bits(static_cast<ptx::Special>(operands[1].index));
  const uint32_t want = ptx::Bits(i.type);
  const uint32_t value = have == want ? d : Temp(have / 8);
  Emit(have == 64 ? ReadSpecial64 : ReadSpecial32, value).imm = operands[1].index;
  if (have != want) {
    ConvertInteger(d, want / 8, want == 64 ? Type::kU64 : Type::kU32, value, have / 8,
                   have == 64 ? Type::kU64 : Type::kU32, false);
  }
}

void FunctionTranslator::Cvta(const Instruction& i) {
  const Operand* operands = Operands(i);
  const uint32_t a = operands[1].kind == Operand::Kind::kSymbol ? SymbolAddress(operands[1])
                                                                : Source(operands[1], 8);
  uint64_t window = 0;
  if (i.space == Space::kShared) window = ptx::kSharedWindow;
  if (i.space == Space::kLocal) window = ptx::kLocalWindow;
  if (i.space == Space::kParam) window = ptx::kParamWindow;
  if (i.Has(ptx::kTo)) window = 0 - window;
  if (window == 0) {
    Emit(FindHandlerBySize(Op::kMov, Type::kU64), Dest(operands[0]), a);
  } else {
    Emit(FindHandlerBySize(Op::kAdd, Type::kU64), Dest(operands[0]), a, Constant(8, window));
  }
}

}  // namespace softgpu::exec
