// Holds every instruction against its row: after this, sizes of registers fit what executors
// assume.
#include <cstring>

#include "softgpu/ptx/check_modes.h"
#include "softgpu/ptx/instruction_table.h"
#include "softgpu/ptx/parser.h"

namespace softgpu::ptx {
namespace {

// The bits of an immediate as a value of `type`.
uint64_t ConvertImmediate(const Operand& operand, Type type) {
  uint64_t bits = operand.bits;
  if (operand.count == 2 && Bits(type) == 32) {
    double wide;
    std::memcpy(&wide, &bits, sizeof wide);
    const float narrow = static_cast<float>(wide);
    bits = 0;
    std::memcpy(&bits, &narrow, sizeof narrow);
  } else if (operand.count == 1 && Bits(type) == 64 && IsFloat(type)) {
    float narrow;
    std::memcpy(&narrow, &bits, sizeof narrow);
    const double wide = narrow;
    std::memcpy(&bits, &wide, sizeof wide);
  } else if (operand.count == 0 && type == Type::kF32) {
    const float value = static_cast<float>(static_cast<int64_t>(bits));
    bits = 0;
    std::memcpy(&bits, &value, sizeof value);
  } else if (operand.count == 0 && type == Type::kF64) {
    const double value = static_cast<double>(static_cast<int64_t>(bits));
    std::memcpy(&bits, &value, sizeof value);
  }
  if (type == Type::kPred) return bits != 0;
  return Bits(type) >= 64 ? bits : bits & ((1ull << Bits(type)) - 1);
}

Type UnsignedOf(uint32_t bits) {
  switch (bits) {
    case 8:
      return Type::kB8;
    case 16:
      return Type::kB16;
    case 32:
      return Type::kB32;
    case 64:
      return Type::kB64;
    default:
      return Type::kB128;
  }
}

bool HoldsFragment(uint32_t bits) { return bits == 32 || bits == 64; }

// Coordinates of a texture or surface, a layer included.
uint32_t CoordinatesOf(Geometry geometry) {
  switch (geometry) {
    case Geometry::k1D:
      return 1;
    case Geometry::k2D:
    case Geometry::k1DLayered:
      return 2;
    case Geometry::kCubeLayered:
      return 4;
    default:
      return 3;
  }
}

}  // namespace

uint32_t Parser::RegisterBits(const Operand& operand) const {
  return operand.kind == Operand::Kind::kRegister ? Bits(function_->registers[operand.index]) : 0;
}

bool Parser::CheckPredicate(const Operand& operand, bool result) {
  if (operand.kind == Operand::Kind::kRegister) {
    return function_->registers[operand.index] == Type::kPred && !(result && operand.negated);
  }
  return result ? operand.kind == Operand::Kind::kSink : operand.kind == Operand::Kind::kImmediate;
}

bool Parser::CheckValue(Operand* operand, Type type, bool may_be_wider, bool result) {
  if (operand->negated) return false;
  const uint32_t wanted = Bits(type);
  switch (operand->kind) {
    case Operand::Kind::kRegister: {
      const uint32_t bits = RegisterBits(*operand);
      if (bits == 1 || bits == 0) return false;
      // There are no 8-bit registers in arithmetic; bytes live in wider ones.
      return bits == wanted || (may_be_wider && bits > wanted && bits <= 64);
    }
    case Operand::Kind::kSink:
      return result;
    case Operand::Kind::kImmediate:
      if (result) return false;
      operand->bits = ConvertImmediate(*operand, type);
      operand->count = 0;
      return true;
    case Operand::Kind::kSpecial:
      return !result && Bits(static_cast<Special>(operand->index)) <= wanted;
    default:
      return false;
  }
}

bool Parser::CheckOperand(const Instruction& i, char letter, bool result, Operand* operand) {
  const bool wide = i.Has(kHasMode) && static_cast<MulMode>(i.mode) == MulMode::kWide &&
                    (i.op == Op::kMul || i.op == Op::kMad);
  switch (letter) {
    case 'T':
      if (i.type == Type::kPred) return CheckPredicate(*operand, result);
      return CheckValue(operand, i.type, false, result);
    case 'R':
      return CheckValue(operand, i.type, false, result);
    case 'W':
      return CheckValue(operand, wide ? UnsignedOf(2 * Bits(i.type)) : i.type, false, result);
    case 'S':
      return CheckValue(operand, i.type2, false, result);
    case 'Z':
      return CheckValue(operand, i.type, true, result);
    case 'Y':
      return CheckValue(operand, i.type2, true, result);
    case 'u':
      return CheckValue(operand, Type::kB32, false, result);
    case 'h':
      return CheckValue(operand, Type::kB16, false, result);
    case 'q':
      return CheckValue(operand, Type::kB64, false, result);
    case 'p':
    case 'P':
      return CheckPredicate(*operand, result);
    case 'i':
      return operand->kind == Operand::Kind::kImmediate && operand->count == 0;
    case 'x':
      return true;
    case 'A': {
      const uint32_t bits = RegisterBits(*operand);
      return operand->address &&
             (operand->kind != Operand::Kind::kRegister || bits == 32 || bits == 64);
    }
    case 'V': {
      if (operand->kind != Operand::Kind::kVector) {
        return i.vector == 1 && CheckValue(operand, i.type, true, result);
      }
      if (operand->count != i.vector) return false;
      for (uint32_t k = 0; k < operand->count; ++k) {
        Operand& element = function_->operands[operand->index + k];
        if (!CheckValue(&element, i.type, true, result)) return false;
      }
      return true;
    }
    case 'E': {
      if (operand->kind != Operand::Kind::kVector) {
        return i.vector == 1 && CheckValue(operand, i.type, false, result);
      }
      if (operand->count != i.vector) return false;
      for (uint32_t k = 0; k < operand->count; ++k) {
        Operand& element = function_->operands[operand->index + k];
        if (!CheckValue(&element, i.type, false, result)) return false;
      }
      return true;
    }
    case 'b':
      return CheckValue(operand, Type::kB32, false, result);
    case 'M': {
      if (operand->kind != Operand::Kind::kVector) return HoldsFragment(RegisterBits(*operand));
      for (uint32_t k = 0; k < operand->count; ++k) {
        if (!HoldsFragment(RegisterBits(function_->operands[operand->index + k]))) return false;
      }
      return true;
    }
    default:
      return false;
  }
}

// Packs and unpacks: the vector's elements make up the scalar.
bool Parser::CheckMove(const Instruction& i, Operand* operands) {
  Operand& to = operands[0];
  Operand& from = operands[1];
  if (i.type == Type::kPred) {
    if (from.kind == Operand::Kind::kSpecial && from.index == static_cast<uint32_t>(Special::kZero))
      from.kind = Operand::Kind::kImmediate;  // %is_explicit_cluster
    return CheckPredicate(to, true) && CheckPredicate(from, false);
  }
  Operand* vector = to.kind == Operand::Kind::kVector     ? &to
                    : from.kind == Operand::Kind::kVector ? &from
                                                          : nullptr;
  if (vector != nullptr) {
    if (vector->count != 2 && vector->count != 4) return false;
    const uint32_t bits = Bits(i.type) / vector->count;
    if (bits < 8) return false;
    for (uint32_t k = 0; k < vector->count; ++k) {
      Operand& element = function_->operands[vector->index + k];
      if (!CheckValue(&element, UnsignedOf(bits), bits == 8, vector == &to)) return false;
    }
    return CheckValue(vector == &to ? &from : &to, i.type, false, vector == &from);
  }
  if (!CheckValue(&to, i.type, false, true)) return false;
  if (from.kind == Operand::Kind::kSymbol || from.kind == Operand::Kind::kFunction) {
    return Bits(i.type) == 64 || (Bits(i.type) == 32 && from.kind == Operand::Kind::kSymbol);
  }
  if (from.kind == Operand::Kind::kSpecial) {
    return Bits(i.type) >= 32 && Bits(i.type) <= 64;  // clock64 read as 32 bits gives the low half
  }
  return CheckValue(&from, i.type, false, false);
}

// The object, then its coordinates, of which the ISA lets the last be padding.
bool Parser::CheckCoordinates(const Instruction& i, const Operand& operand) {
  const bool gathers = i.op == Op::kTld4;
  const bool texture = i.op == Op::kTex || gathers;
  if (!operand.address || operand.kind != Operand::Kind::kVector || !i.Has(kHasMode)) return false;
  if (texture && i.vector != 4) return false;
  const Geometry geometry = static_cast<Geometry>(i.mode);
  const bool cube = geometry == Geometry::kCube || geometry == Geometry::kCubeLayered;
  const bool layered = geometry == Geometry::k1DLayered || geometry == Geometry::k2DLayered ||
                       geometry == Geometry::kCubeLayered;
  const bool flat = geometry == Geometry::k2D || geometry == Geometry::k2DLayered;
  if (gathers && !flat && !cube) return false;
  const uint32_t needed = CoordinatesOf(geometry);
  if ((cube && !texture) || operand.count < needed + 1 || operand.count > 5) return false;
  Operand* const elements = function_->operands.data() + operand.index;
  if (elements[0].kind != Operand::Kind::kRegister || RegisterBits(elements[0]) != 64) return false;
  for (uint32_t k = 1; k < operand.count; ++k) {
    const bool is_float = texture && i.type2 == Type::kF32 && !(layered && k == 1);
    if (!CheckValue(&elements[k], is_float ? Type::kF32 : Type::kB32, false, false)) return false;
  }
  return true;
}

// Rows whose signature has an 'x'.
bool Parser::CheckSpecialForm(const Instruction& i, Operand* o) {
  switch (i.op) {
    case Op::kMov:
      return CheckMove(i, o);
    case Op::kCvta:
    case Op::kMapa:
    case Op::kGetctarank:
      return o[1].kind == Operand::Kind::kSymbol || CheckValue(&o[1], i.type, false, false);
    case Op::kMbarrierTestWait:
    case Op::kMbarrierTryWait:
      return CheckValue(&o[2], i.Has(kParity) ? Type::kB32 : Type::kB64, false, false);
    case Op::kCpBulk:
    case Op::kCpReduceBulk:
      return CheckBulk(i, o);
    case Op::kCreatepolicy:
      return i.count >= 1 && i.count <= 4;
    case Op::kStBulk:
      return CheckValue(&o[1], Type::kB64, false, false) && o[2].bits == 0 &&
             (i.space == Space::kShared || i.space == Space::kGeneric);
    case Op::kTex:
    case Op::kTld4:
    case Op::kSuld:
    case Op::kSust:
      return CheckCoordinates(i, o[i.op == Op::kSust ? 0 : 1]);
    case Op::kBra:
      return o[0].kind == Operand::Kind::kLabel;
    case Op::kBrx:
      return o[1].kind == Operand::Kind::kLabel;
    case Op::kVote:
      if (!i.Has(kHasMode)) return false;
      if (static_cast<VoteMode>(i.mode) == VoteMode::kBallot) {
        return i.type == Type::kB32 && CheckValue(&o[0], Type::kB32, false, true);
      }
      return i.type == Type::kPred && CheckPredicate(o[0], true);
    case Op::kMatch:
      return i.Has(kHasMode) && CheckValue(&o[0], Type::kB32, false, true);
    case Op::kElect:
      return CheckValue(&o[0], Type::kB32, false, true);
    case Op::kBar:
    case Op::kBarrier: {
      const bool reduces = static_cast<BarMode>(i.mode) == BarMode::kRed;
      if (!reduces) {
        for (uint32_t k = 0; k < i.count; ++k) {
          if (!CheckValue(&o[k], Type::kB32, false, false)) return false;
        }
        return i.count <= 2 && (i.count >= 1 || i.op == Op::kBarrier);
      }
      if (i.count != 3 && i.count != 4) return false;
      const bool pops = i.combine == Combine::kPopc;
      if (pops ? !CheckValue(&o[0], Type::kB32, false, true) : !CheckPredicate(o[0], true))
        return false;
      for (uint32_t k = 1; k + 1 < i.count; ++k) {
        if (!CheckValue(&o[k], Type::kB32, false, false)) return false;
      }
      return CheckPredicate(o[i.count - 1], false);
    }
    case Op::kCpAsync: {
      const AsyncMode mode = static_cast<AsyncMode>(i.mode);
      if (mode != AsyncMode::kCopy) return i.count == (mode == AsyncMode::kWaitGroup ? 1u : 0u);
      if (i.count < 3 || i.count > 4 || i.space != Space::kShared || i.space2 != Space::kGlobal)
        return false;
      if (!CheckOperand(i, 'A', false, &o[0]) || !CheckOperand(i, 'A', false, &o[1])) return false;
      if (o[2].kind != Operand::Kind::kImmediate || o[2].count != 0) return false;
      if (o[2].bits != 4 && o[2].bits != 8 && o[2].bits != 16) return false;
      return i.count == 3 || CheckValue(&o[3], Type::kB32, false, false);
    }
    default:
      return true;
  }
}

void Parser::Check(Instruction* instruction) {
  Instruction& i = *instruction;
  if (i.op == Op::kCall) return;
  const Row& row = RowOf(i.op);
  Operand* operands = function_->operands.data() + i.first;
  bool fits = true;
  if (i.Has(kCacheHint)) {  // a policy is a hint: it is checked and forgotten
    fits = i.count > 0 && CheckValue(&operands[i.count - 1], Type::kB64, false, false);
    if (fits) --i.count;
  }
  fits = fits && ModifiersFit(i);
  bool result = true, optional = false, any = false;
  uint32_t at = 0;
  for (char letter : row.signature) {
    if (letter == '=') {
      result = false;
    } else if (letter == '[' || letter == ']') {
      optional = letter == '[';
    } else if (letter == '*') {
      any = true;
    } else if (at >= i.count) {
      fits = fits && (optional || row.signature.find('*') != std::string_view::npos);
    } else {
      Operand& operand = operands[at++];
      fits =
          fits && (operand.second == kNoIndex || letter == 'P' || letter == 'R' || letter == 'x');
      fits = fits && CheckOperand(i, letter, result, &operand);
    }
  }
  fits = fits && (any || at == i.count);
  if (fits && row.signature.find('x') != std::string_view::npos)
    fits = CheckSpecialForm(i, operands);
  if (fits && IsMatrix(i.op)) fits = CheckMatrix(i, operands);
  if (!fits) Fail(i.line, "Arguments mismatch for instruction '" + std::string(row.name) + "'");
}

}  // namespace softgpu::ptx
