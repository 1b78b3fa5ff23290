#include "replay/address_terms.h"

#include "replay/arithmetic.h"
#include "softgpu/ptx/instruction_table.h"

namespace replay {

using softgpu::ptx::Function;
using softgpu::ptx::Instruction;
using softgpu::ptx::kNoIndex;
using softgpu::ptx::MulMode;
using softgpu::ptx::Op;
using softgpu::ptx::Operand;
using softgpu::ptx::Space;
using softgpu::ptx::Special;
using softgpu::ptx::Type;

namespace {

constexpr int kDepthMax = 400;  // of operands within operands: the stack is bounded

bool IsInteger(Type type) {
  const uint32_t bits = softgpu::ptx::Bits(type);
  return (bits == 32 || bits == 64) && !softgpu::ptx::IsFloat(type);
}

// Calls `visit` with each register that the instruction sets.
template <class Visit>
void ForEachResult(const Function& function, const Instruction& i, const Visit& visit) {
  const std::string_view signature = softgpu::ptx::RowOf(i.op).signature;
  const Operand* o = function.Operands(i);
  if (signature.front() == '=' || i.count == 0) return;
  const auto one = [&](const Operand& operand) {
    if (operand.kind == Operand::Kind::kRegister) visit(operand.index);
    if (operand.second != kNoIndex) visit(operand.second);
  };
  one(o[0]);
  for (uint32_t k = 0; o[0].kind == Operand::Kind::kVector && k < o[0].count; ++k) {
    one(function.operands[o[0].index + k]);
  }
}

}  // namespace

// Two instructions may set a register, or one instruction under a guard: then its value is one of
// several, and the register gets no setter.
AddressTerms::AddressTerms(const Function& function, Expressions* expressions)
    : function_(function),
      expressions_(expressions),
      setters_(function.registers.size()),
      terms_(function.registers.size(), kNotYet) {
  std::vector<uint32_t> count(function.registers.size());
  for (const Instruction& i : function.instructions) {
    ForEachResult(function, i, [&](uint32_t reg) {
      setters_[reg] = ++count[reg] == 1 && i.guard == kNoIndex ? &i : nullptr;
    });
  }
}

TermIndex AddressTerms::Of(const Operand& operand, uint8_t bits) {
  TermIndex base = kNoTerm;
  switch (operand.kind) {
    case Operand::Kind::kRegister:
      base = OfRegister(operand.index);
      break;
    case Operand::Kind::kImmediate:
      return expressions_->Constant(static_cast<int64_t>(operand.bits), bits);
    case Operand::Kind::kSpecial:
      return OfSpecial(operand.index, bits);
    default:
      return kNoTerm;
  }
  if (base == kNoTerm || !operand.address || operand.bits == 0) return base;
  return Binary(Term::kAdd, Type::kU64, base,
                expressions_->Constant(static_cast<int64_t>(operand.bits), 64));
}

// Registers that are being looked at have no term yet, so a cycle ends there.
TermIndex AddressTerms::OfRegister(uint32_t index) {
  if (terms_[index] != kNotYet) return terms_[index];
  terms_[index] = kNoTerm;
  if (setters_[index] == nullptr || depth_ >= kDepthMax) return kNoTerm;
  ++depth_;
  const TermIndex term = OfInstruction(*setters_[index]);
  --depth_;
  return terms_[index] = term;
}

// Instructions of integers that compilers make of an index; all others have no term.
TermIndex AddressTerms::OfInstruction(const Instruction& i) {
  const Operand* o = function_.Operands(i);
  if (o[0].kind != Operand::Kind::kRegister && i.op != Op::kLd) return kNoTerm;
  switch (i.op) {
    case Op::kLd:
      return OfParameter(i);
    case Op::kMov:
      return IsInteger(i.type) ? Of(o[1], static_cast<uint8_t>(softgpu::ptx::Bits(i.type)))
                               : kNoTerm;
    case Op::kCvta:
      return i.space == Space::kGlobal ? Of(o[1], 64) : kNoTerm;
    case Op::kCvt:
      return OfConversion(i);
    case Op::kMul:
    case Op::kMad:
      return OfProduct(i);
    case Op::kAdd:
      return OfTwo(i, Term::kAdd);
    case Op::kSub:
      return OfTwo(i, Term::kSubtract);
    case Op::kShl:
      return OfTwo(i, Term::kShiftLeft);
    case Op::kShr:
      return OfTwo(i, Term::kShiftRight);
    case Op::kDiv:
      return OfTwo(i, Term::kDivide);
    case Op::kRem:
      return OfTwo(i, Term::kRemainder);
    case Op::kAnd:
      return OfTwo(i, Term::kAnd);
    case Op::kMin:
      return OfTwo(i, Term::kMinimum);
    case Op::kMax:
      return OfTwo(i, Term::kMaximum);
    case Op::kSelp:
      return OfTwo(i, Term::kEither);
    default:
      return kNoTerm;
  }
}

// Operations that saturate do not wrap around, so interval arithmetic on residues does not hold.
TermIndex AddressTerms::OfTwo(const Instruction& i, Term term) {
  const bool plain = (i.flags & (softgpu::ptx::kSat | softgpu::ptx::kRelu)) == 0;
  if (!IsInteger(i.type) || !plain) return kNoTerm;
  const Operand* o = function_.Operands(i);
  const uint8_t bits = static_cast<uint8_t>(softgpu::ptx::Bits(i.type));
  const bool shifts = term == Term::kShiftLeft || term == Term::kShiftRight;
  const TermIndex left = Of(o[1], bits);
  if (left == kNoTerm) return kNoTerm;
  return Binary(term, i.type, left, Of(o[2], shifts ? 32 : bits));
}

// mul.wide and mad.wide read 32 bits and give 64; the upper half alone (mul.hi) is no use for an
// index.
TermIndex AddressTerms::OfProduct(const Instruction& i) {
  const MulMode mode = static_cast<MulMode>(i.mode);
  if (!IsInteger(i.type) || i.Has(softgpu::ptx::kSat) || mode == MulMode::kHi) return kNoTerm;
  const Operand* o = function_.Operands(i);
  const uint8_t bits = static_cast<uint8_t>(softgpu::ptx::Bits(i.type));
  const bool wide = mode == MulMode::kWide;
  if (wide && bits != 32) return kNoTerm;
  const TermIndex left = Of(o[1], bits), right = Of(o[2], bits);
  if (left == kNoTerm || right == kNoTerm) return kNoTerm;
  const TermIndex product = expressions_->Add({.term = Term::kMultiply,
                                               .bits = static_cast<uint8_t>(wide ? 64 : bits),
                                               .source_bits = bits,
                                               .is_signed = softgpu::ptx::IsSigned(i.type),
                                               .left = left,
                                               .right = right});
  if (i.op == Op::kMul) return product;
  const TermIndex addend = Of(o[3], wide ? 64 : bits);
  return Binary(Term::kAdd, wide ? Type::kU64 : i.type, product, addend);
}

// Conversions from and to 8 and 16 bits are left out: indices have 32 or 64.
TermIndex AddressTerms::OfConversion(const Instruction& i) {
  if (!IsInteger(i.type) || !IsInteger(i.type2) || i.Has(softgpu::ptx::kSat)) return kNoTerm;
  const Operand& to = function_.Operands(i)[0];
  const Operand& from = function_.Operands(i)[1];
  const uint8_t bits = static_cast<uint8_t>(softgpu::ptx::Bits(i.type));
  const uint8_t source_bits = static_cast<uint8_t>(softgpu::ptx::Bits(i.type2));
  if (softgpu::ptx::Bits(function_.registers[to.index]) != bits) return kNoTerm;
  const TermIndex left = Of(from, source_bits);
  if (left == kNoTerm) return kNoTerm;
  return expressions_->Add({.term = Term::kConvert,
                            .bits = bits,
                            .source_bits = source_bits,
                            .is_signed = softgpu::ptx::IsSigned(i.type2),
                            .left = left});
}

// A load of a part of a register, or through an address, has no term.
TermIndex AddressTerms::OfParameter(const Instruction& i) {
  const Operand* o = function_.Operands(i);
  const bool whole =
      o[0].kind == Operand::Kind::kRegister && IsInteger(i.type) &&
      softgpu::ptx::Bits(function_.registers[o[0].index]) == softgpu::ptx::Bits(i.type);
  if (!IsKernelParameter(function_, o[1]) || !whole) return kNoTerm;
  const uint64_t offset = function_.symbols[o[1].index].offset + o[1].bits;
  return expressions_->Add({.term = Term::kParameter,
                            .bits = static_cast<uint8_t>(softgpu::ptx::Bits(i.type)),
                            .value = static_cast<int64_t>(offset)});
}

TermIndex AddressTerms::Binary(Term term, const Type& type, TermIndex left, TermIndex right) {
  if (left == kNoTerm || right == kNoTerm) return kNoTerm;
  const uint8_t bits = static_cast<uint8_t>(softgpu::ptx::Bits(type));
  return expressions_->Add({.term = term,
                            .bits = bits,
                            .source_bits = bits,
                            .is_signed = softgpu::ptx::IsSigned(type),
                            .left = left,
                            .right = right});
}

// Numbers of lanes and warps are left out: an index made of them is rare.
TermIndex AddressTerms::OfSpecial(uint32_t special, uint8_t bits) {
  const auto is_one_of = [special](Special first) {
    const uint32_t x = static_cast<uint32_t>(first);
    return special >= x && special < x + 3;
  };
  const auto term = [&](Term kind, Special first) {
    return expressions_->Add(
        {.term = kind, .bits = bits, .value = special - static_cast<uint32_t>(first)});
  };
  if (is_one_of(Special::kTidX)) return term(Term::kThread, Special::kTidX);
  if (is_one_of(Special::kNtidX)) return term(Term::kBlockThreads, Special::kNtidX);
  if (is_one_of(Special::kCtaidX)) return term(Term::kBlock, Special::kCtaidX);
  if (is_one_of(Special::kNctaidX)) return term(Term::kGridBlocks, Special::kNctaidX);
  return kNoTerm;
}

}  // namespace replay
