#include "softgpu/jit/llvm/operands.h"

#include <cstring>

namespace softgpu::jit {
namespace {

using exec::Internal;
using exec::Op;
using exec::Type;

constexpr int kLo = 1, kWide = 3;

Kind KindOf(Type type) {
  const uint32_t bits = ptx::Bits(type);
  return type == Type::kPred ? Kind::kPred
         : bits <= 16        ? Kind::k16
         : bits == 32        ? Kind::k32
                             : Kind::k64;
}

bool IsInteger(Type type) {
  return type >= Type::kB16 && type <= Type::kS64 && type != Type::kB128 && type != Type::kU8 &&
         type != Type::kS8;
}

bool IsSingleOrDouble(Type type) { return type == Type::kF32 || type == Type::kF64; }

// Appends the fields a, b, c as sources of `kind`.
void Take(const ProgramInst& i, int count, Kind kind, Operands* out) {
  const uint32_t fields[] = {i.a, i.b, i.c};
  for (int k = 0; k < count; ++k) out->sources.push_back({fields[k], kind});
}

void Give(uint32_t offset, Kind kind, Operands* out) {
  out->native = true;
  out->results.push_back({offset, kind});
}

// Rows with one type throughout; the number of sources, or 0.
int SourcesOfSimple(const Row& row) {
  const bool integer = IsInteger(row.type), floating = IsSingleOrDouble(row.type);
  const bool plain = row.variant == 0;
  switch (row.op) {
    case Op::kAdd:
    case Op::kSub:
      return plain && (integer || floating) ? 2 : 0;
    case Op::kMul:
      return (integer && row.variant == kLo) || (floating && plain) ? 2 : 0;
    case Op::kMad:
      return (integer && row.variant == kLo) || (floating && plain) ? 3 : 0;
    case Op::kFma:
      return floating && plain ? 3 : 0;
    case Op::kDiv:
      return floating && row.variant <= 1 ? 2 : 0;
    case Op::kCopysign:
      return floating && plain ? 2 : 0;
    case Op::kMin:
    case Op::kMax:
      return (integer || floating) && plain ? 2 : 0;
    case Op::kRcp:
    case Op::kSqrt:
    case Op::kRsqrt:
      return floating && plain ? 1 : 0;
    case Op::kAbs:
    case Op::kNeg:
      return integer || floating ? 1 : 0;
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor:
      return integer || row.type == Type::kPred ? 2 : 0;
    case Op::kNot:
    case Op::kMov:
      return integer || row.type == Type::kPred ? 1 : 0;
    case Op::kCnot:
      return integer ? 1 : 0;
    case Op::kLop3:
    case Op::kShf:
      return 3;
    default:
      return 0;
  }
}

void TakeConversion(const ProgramInst& i, const Row& row, Operands* out) {
  constexpr int kGeneral = 200, kOdd = 4;
  const bool floats = row.type == Type::kF32 || row.type == Type::kF64;
  const bool from_half = row.type == Type::kF32 && row.type2 == Type::kF16;
  const bool to_half = row.type == Type::kF16 && row.type2 == Type::kF32 && row.variant == 0;
  const bool integers = IsInteger(row.type) && IsInteger(row.type2);
  const bool rounds = row.type == row.type2 && floats && row.variant >= 10;
  const bool between = (IsSingleOrDouble(row.type) || IsInteger(row.type)) &&
                       (IsSingleOrDouble(row.type2) || IsInteger(row.type2)) && row.variant < kOdd;
  if (!from_half && !to_half && !rounds && !between && !(integers && row.variant == kGeneral))
    return;
  if (row.variant == kGeneral && (i.imm >> 32 & 1) != 0) return;  // saturates
  Take(i, 1, KindOf(row.type2), out);
  Give(i.d, KindOf(row.type), out);
}

void TakeInternal(const ProgramInst& i, const Row& row, Operands* out) {
  switch (row.what) {
    case Internal::kBroadcast:
      return Give(i.d, KindOf(row.type), out);
    case Internal::kSaturate:
    case Internal::kRelu:
      if (!IsSingleOrDouble(row.type)) return;
      Take(i, 1, KindOf(row.type), out);
      return Give(i.d, KindOf(row.type), out);
    case Internal::kFlush:
      if (row.type != Type::kF32) return;
      Take(i, 1, Kind::k32, out);
      return Give(i.d, Kind::k32, out);
    case Internal::kPack:
      Take(i, 2, row.type == Type::kB32 ? Kind::k16 : Kind::k32, out);
      return Give(i.d, KindOf(row.type), out);
    case Internal::kUnpack:
      Take(i, 1, KindOf(row.type), out);
      Give(i.d, row.type == Type::kB32 ? Kind::k16 : Kind::k32, out);
      return Give(i.b, row.type == Type::kB32 ? Kind::k16 : Kind::k32, out);
    default:
      break;
  }
  Access access;
  if (!AccessOf(row, &access)) return;
  const uint32_t registers[4] = {i.d, i.b, i.c, i.e};
  out->native = true;
  out->sources.push_back({i.a, access.narrow ? Kind::k32 : Kind::k64});
  for (uint32_t k = 0; k < access.count; ++k) {
    (access.is_store ? out->sources : out->results).push_back({registers[k], access.kind});
  }
}

void TakeRow(const ProgramInst& i, Operands* out) {
  const Row row = RowOf(i.key);
  if (row.internal) return TakeInternal(i, row, out);
  if (row.op == Op::kCvt) return TakeConversion(i, row, out);
  const Kind kind = KindOf(row.type);
  const int simple = SourcesOfSimple(row);
  if (simple != 0) {
    Take(i, simple, kind, out);
    return Give(i.d, kind, out);
  }
  const bool integer = IsInteger(row.type);
  switch (row.op) {
    case Op::kMul:
    case Op::kMad:
      if (!integer || row.variant != kWide) return;
      Take(i, 2, kind, out);
      if (row.op == Op::kMad)
        out->sources.push_back({i.c, kind == Kind::k16 ? Kind::k32 : Kind::k64});
      return Give(i.d, kind == Kind::k16 ? Kind::k32 : Kind::k64, out);
    case Op::kShl:
    case Op::kShr:
      out->sources = {{i.a, kind}, {i.b, Kind::k32}};
      return Give(i.d, kind, out);
    case Op::kSelp:
      out->sources = {{i.a, kind}, {i.b, kind}, {i.c, Kind::kPred}};
      return Give(i.d, kind, out);
    case Op::kPopc:
    case Op::kClz:
      Take(i, 1, kind, out);
      return Give(i.d, Kind::k32, out);
    case Op::kSetp:
      if (!integer && !IsSingleOrDouble(row.type)) return;
      Take(i, 2, kind, out);
      return Give(i.d, Kind::kPred, out);
    default:
      return;
  }
}

}  // namespace

Row RowOf(uint32_t key) {
  Row row;
  row.internal = (key >> 31) != 0;
  row.op = static_cast<Op>(key >> 20 & 0x7ff);
  row.what = static_cast<Internal>(key >> 20 & 0x7ff);
  row.variant = static_cast<int>(key >> 12 & 0xff);
  row.type = static_cast<Type>(key >> 6 & 63);
  row.type2 = static_cast<Type>(key & 63);
  return row;
}

bool AccessOf(const Row& row, Access* access) {
  if (!row.internal) return false;
  const Internal what = row.what;
  if (what < Internal::kLoadFast || what > Internal::kStoreShared64) return false;
  access->is_store = what >= Internal::kStoreFast;
  access->shared = what != Internal::kLoadFast && what != Internal::kStoreFast;
  access->narrow = what == Internal::kLoadShared32 || what == Internal::kStoreShared32;
  access->element_bytes = ptx::Bytes(row.type);
  access->count = static_cast<uint32_t>(row.variant);
  access->kind = KindOf(row.type2);
  access->is_signed = ptx::IsSigned(row.type2);
  return true;
}

bool IsOrdered(const ProgramInst& i) {
  exec::MemoryShape shape;
  std::memcpy(&shape, &i.aux, sizeof shape);
  return shape.is_volatile != 0;
}

Operands OperandsOf(const ProgramInst& i) {
  Operands out;
  exec::MemoryShape shape;
  std::memcpy(&shape, &i.aux, sizeof shape);
  const Kind kinds[] = {Kind::k16, Kind::k32, Kind::k64};
  const uint32_t registers[4] = {i.d, i.b, i.c, i.e};
  switch (i.step) {
    case Step::kRow:
      TakeRow(i, &out);
      break;
    case Step::kParameter:
      for (uint32_t k = 0; k < shape.vector; ++k) {
        Give(registers[k],
             kinds[shape.register_bytes == 8   ? 2
                   : shape.register_bytes == 4 ? 1
                                               : 0],
             &out);
      }
      break;
    case Step::kSpecial:
      if (i.imm <= static_cast<uint64_t>(ptx::Special::kWarpId)) Give(i.d, Kind::k32, &out);
      break;
    case Step::kBranch:
    case Step::kBranchIf:
    case Step::kJoin:
      out.native = true;
      break;
    default:
      break;
  }
  if (out.native) {
    if (i.guarded != 0 || i.step == Step::kBranchIf)
      out.sources.push_back({i.guard & ~1u, Kind::kPred});
    return out;
  }
  out.results.clear();
  out.sources.clear();
  for (uint32_t offset : {i.d, i.a, i.b, i.c, i.e, i.guard & ~1u}) {
    if (offset != 0) out.sources.push_back({offset, Kind::k32});
  }
  return out;
}

}  // namespace softgpu::jit
