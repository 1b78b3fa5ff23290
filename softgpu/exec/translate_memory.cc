// ld, st, atom, red, cp.async: where an access goes, and the fastest handler that does it.
#include <cstring>

#include "softgpu/exec/check.h"
#include "softgpu/exec/translate.h"

namespace softgpu::exec {

using ptx::AtomOp;
using ptx::Instruction;
using ptx::Operand;
using ptx::Space;
using ptx::Symbol;

namespace {

Type ElementType(uint32_t bytes) {
  return bytes == 1 ? Type::kB8 : bytes == 2 ? Type::kB16 : bytes == 4 ? Type::kB32 : Type::kB64;
}

Type RegisterType(uint32_t bytes, bool is_signed) {
  if (bytes == 2) return is_signed ? Type::kS16 : Type::kU16;
  if (bytes == 4) return is_signed ? Type::kS32 : Type::kU32;
  return is_signed ? Type::kS64 : Type::kU64;
}

bool IsFloatAdd(const Instruction& i) {
  return static_cast<AtomOp>(i.mode) == AtomOp::kAdd && ptx::IsFloat(i.type);
}

}  // namespace

FunctionTranslator::Place FunctionTranslator::PlaceOf(const Instruction& i,
                                                      const Operand& address) {
  Place place;
  place.space = i.space;
  place.offset = address.bits;
  if (address.kind == Operand::Kind::kImmediate) {
    place.reg = Constant(8, address.bits);
    place.offset = 0;
    return place;
  }
  if (address.kind == Operand::Kind::kRegister) {
    place.reg = offset_of_[address.index];
    place.narrow = ptx::Bits(f_.registers[address.index]) == 32;
    const uint64_t parameter = parameter_addresses_[address.index];
    if (i.op == Op::kLd && i.space == Space::kParam && parameter != kNoParameter) {
      place.kernel_param = true;
      place.offset += parameter;
      return place;
    }
    // Parameters of a function, and those for a call, lie in local memory.
    if (i.space == Space::kParam && !f_.entry) place.space = Space::kLocal;
    return place;
  }
  const Symbol& symbol = SymbolOf(address);
  const bool parameter = f_.entry && !address.module_scope && address.index < f_.parameters.size();
  if (parameter) {
    place.kernel_param = true;
    place.offset = symbol.offset + address.bits;
  } else if (symbol.space == Space::kShared) {
    const ptx::Function* owner = address.module_scope ? nullptr : &f_;
    place.space = Space::kShared;
    place.narrow = true;
    place.reg = Constant(4, kernel_->kernel->SharedOffset(owner, address.index));
  } else if (symbol.variable != ptx::kNoIndex) {
    place.space = Space::kGlobal;
    place.reg = Constant(8, 0, symbol.variable);
  } else {
    place.space = Space::kLocal;
    place.reg = local_base_;
    place.offset = symbol.offset + address.bits;
  }
  return place;
}

// The checked translation looks at an access before it happens.
void FunctionTranslator::CheckBefore(const Place& place, MemoryShape shape,
                                     const uint32_t registers[4], bool atomic) {
  if (!kernel_->checked || place.kernel_param) return;
  shape.space = static_cast<uint8_t>(place.space);
  shape.narrow_address = place.narrow;
  Inst& inst =
      Emit(atomic ? CheckAtomic : CheckAccess, registers[0], place.reg, registers[1], registers[2]);
  inst.e = registers[3];
  inst.imm = place.offset;
  std::memcpy(&inst.aux, &shape, sizeof shape);
}

void FunctionTranslator::EmitAccess(const Place& place, Handler fast, MemoryShape shape,
                                    const uint32_t registers[4], bool atomic) {
  shape.space = static_cast<uint8_t>(place.space);
  shape.narrow_address = place.narrow;
  CheckBefore(place, shape, registers, atomic);
  const Handler handler = place.kernel_param ? LoadParam : fast != nullptr ? fast : AccessAny;
  Inst& inst = Emit(handler, registers[0], place.reg, registers[1], registers[2]);
  inst.e = registers[3];
  inst.imm = place.offset;
  std::memcpy(&inst.aux, &shape, sizeof shape);
}

void FunctionTranslator::LoadStore(const Instruction& i) {
  const bool is_store = i.op == Op::kSt;
  const Operand* operands = Operands(i);
  const Operand& data = operands[is_store ? 1 : 0];
  Place place = PlaceOf(i, operands[is_store ? 0 : 1]);
  const uint32_t bytes = ptx::Bytes(i.type);
  const uint32_t count = data.kind == Operand::Kind::kVector ? data.count : 1;
  std::vector<uint32_t> registers(std::max(count, 4u)), widths(count);
  bool same_width = true;
  for (uint32_t k = 0; k < count; ++k) {
    const Operand& element =
        data.kind == Operand::Kind::kVector ? f_.operands[data.index + k] : data;
    const bool is_register = element.kind == Operand::Kind::kRegister;
    // A sink or immediate is as wide as the first register says, so that one handler does all.
    widths[k] = is_register || k == 0 ? RegisterBytes(element, bytes) : widths[0];
    registers[k] = is_store ? Source(element, widths[k]) : Dest(element);
    same_width = same_width && widths[k] == widths[0];
  }
  MemoryShape shape = {};
  shape.element_bytes = static_cast<uint8_t>(bytes);
  shape.is_signed = ptx::IsSigned(i.type) && !is_store;
  shape.is_store = is_store;
  shape.is_volatile = i.Has(ptx::kVolatile);
  if (place.kernel_param && is_store) {
    Emit(Unimplemented);
    return;
  }
  if (!same_width || count * bytes > 16) {
    return LoadStoreElements(i, place, shape, registers, widths);
  }
  shape.register_bytes = static_cast<uint8_t>(widths[0]);
  shape.vector = static_cast<uint8_t>(count);
  const bool global = place.space == Space::kGeneric || place.space == Space::kGlobal ||
                      place.space == Space::kConst;
  Handler fast = nullptr;
  Internal what = is_store ? Internal::kStoreFast : Internal::kLoadFast;
  if (place.space == Space::kShared) {
    what = is_store ? (place.narrow ? Internal::kStoreShared32 : Internal::kStoreShared64)
                    : (place.narrow ? Internal::kLoadShared32 : Internal::kLoadShared64);
  }
  if (bytes <= 8 && ((global && !place.narrow) || place.space == Space::kShared)) {
    const bool widens = widths[0] > bytes && shape.is_signed;
    fast = FindHandler(
        Key(what, ElementType(bytes), static_cast<int>(count), RegisterType(widths[0], widens)));
  }
  EmitAccess(place, fast, shape, registers.data(), i.Has(ptx::kVolatile));
}

// The address of a vector that is handled element by element, after the whole has been found
// aligned: a copy, since an element may overwrite it.
void FunctionTranslator::CheckVector(Place* place, MemoryShape shape, uint32_t bytes) {
  const uint32_t copy = Temp(place->narrow ? 4 : 8);
  const Type type = place->narrow ? Type::kU32 : Type::kU64;
  Emit(FindHandlerBySize(Op::kMov, type), copy, place->reg);
  place->reg = copy;
  shape.narrow_address = place->narrow;
  Inst& check = Emit(CheckAlignment, 0, copy);
  check.imm = place->offset;
  check.c = bytes;
  std::memcpy(&check.aux, &shape, sizeof shape);
}

// A vector whose registers differ in width, or that is longer than one Inst can hold.
void FunctionTranslator::LoadStoreElements(const Instruction& i, Place place, MemoryShape shape,
                                           const std::vector<uint32_t>& registers,
                                           const std::vector<uint32_t>& widths) {
  const uint32_t bytes = ptx::Bytes(i.type);
  const uint32_t count = static_cast<uint32_t>(widths.size());
  if (!place.kernel_param) CheckVector(&place, shape, count * bytes);
  for (uint32_t k = 0; k < count; ++k, place.offset += bytes) {
    const uint32_t element[4] = {registers[k], 0, 0, 0};
    shape.register_bytes = static_cast<uint8_t>(widths[k]);
    shape.vector = 1;
    EmitAccess(place, nullptr, shape, element, i.Has(ptx::kVolatile));
  }
}

// st.bulk
void FunctionTranslator::ZeroShared(const Instruction& i) {
  const Operand* operands = Operands(i);
  Place place = PlaceOf(i, operands[0]);
  MemoryShape shape = {};
  shape.is_store = true;
  shape.narrow_address = place.narrow;
  shape.space = static_cast<uint8_t>(place.space);
  Inst& inst = Emit(FillZero, 0, place.reg, Source(operands[1], 8));
  inst.imm = place.offset;
  std::memcpy(&inst.aux, &shape, sizeof shape);
}

void FunctionTranslator::Atomic(const Instruction& i) {
  const Operand* operands = Operands(i);
  const uint32_t first = i.op == Op::kAtom ? 1 : 0;
  Place place = PlaceOf(i, operands[first]);
  const uint32_t bytes = ptx::Bytes(i.type);
  if (IsFloatAdd(i)) kernel_->in_order = true;
  MemoryShape shape = {};
  shape.element_bytes = shape.register_bytes = static_cast<uint8_t>(bytes);
  shape.vector = 1;
  shape.is_store = 1;
  shape.narrow_address = place.narrow;
  shape.space = static_cast<uint8_t>(place.space);
  if (i.vector > 1) CheckVector(&place, shape, i.vector * bytes);
  for (uint32_t k = 0; k < i.vector; ++k, place.offset += bytes) {
    const auto element = [&](const Operand& operand) -> const Operand& {
      const bool vector = operand.kind == Operand::Kind::kVector;
      return vector ? f_.operands[operand.index + k] : operand;
    };
    const uint32_t d = first == 1 ? Dest(element(operands[0])) : sink_;
    const uint32_t b = Source(element(operands[first + 1]), bytes);
    const uint32_t c = i.count > first + 2 ? Source(operands[first + 2], bytes) : b;
    const uint32_t registers[4] = {b, b, b, b};
    CheckBefore(place, shape, registers, true);
    Inst& inst = Emit(AtomicHandler(i.mode, i.type), d, place.reg, b, c);
    inst.imm = place.offset;
    std::memcpy(&inst.aux, &shape, sizeof shape);
  }
}

void FunctionTranslator::AsyncCopy(const Instruction& i) {
  if (static_cast<ptx::AsyncMode>(i.mode) != ptx::AsyncMode::kCopy) {
    Emit(Nothing);
    return;
  }
  const Operand* operands = Operands(i);
  Instruction global = i;
  global.space = Space::kGlobal;
  const Place to = PlaceOf(i, operands[0]);
  const Place from = PlaceOf(global, operands[1]);
  const uint32_t size = i.count > 3 ? Source(operands[3], 4) : 0;
  MemoryShape shape = {};
  shape.element_bytes = shape.register_bytes = static_cast<uint8_t>(operands[2].bits);
  shape.vector = 1;
  const uint32_t none[4] = {sink_, sink_, sink_, sink_};
  if (i.count == 3) CheckBefore(from, shape, none, false);
  Inst& inst = Emit(CopyAsync, 0, to.reg, from.reg, size);
  inst.imm = (to.offset & 0xffffffff) | from.offset << 32;
  inst.aux = static_cast<uint32_t>(operands[2].bits) | uint32_t{to.narrow} << 16 |
             uint32_t{from.narrow} << 17 | (i.count > 3 ? 1u << 18 : 0);
}

}  // namespace softgpu::exec
