// mbarriers, bulk copies, the stack, and video instructions.
#include "softgpu/exec/translate.h"

namespace softgpu::exec {

using ptx::Instruction;
using ptx::Operand;
using ptx::Space;

// An address in 64 bits with its offset added; `place` says in which space it is.
uint32_t FunctionTranslator::EffectiveAddress(const Instruction& i, const Operand& address,
                                              Place* place) {
  *place = PlaceOf(i, address);
  uint32_t reg = place->reg;
  if (place->narrow) {
    reg = Temp(8);
    ConvertInteger(reg, 8, Type::kU64, place->reg, 4, Type::kU32, false);
  }
  if (place->offset == 0) return reg;
  const uint32_t sum = Temp(8);
  Emit(FindHandlerBySize(Op::kAdd, Type::kU64), sum, reg, Constant(8, place->offset));
  return sum;
}

void FunctionTranslator::Asynchronous(const Instruction& i) {
  switch (i.op) {
    case Op::kCpBulk:
    case Op::kCpReduceBulk:
      return BulkCopy(i);
    case Op::kStAsync:
    case Op::kRedAsync:
      return AsyncAccess(i);
    default:
      return Mbarrier(i);
  }
}

void FunctionTranslator::Mbarrier(const Instruction& i) {
  const Operand* operands = Operands(i);
  BeginControl(i);
  if (i.op == Op::kMbarrierPendingCount) {
    Emit(MbarrierPending, Dest(operands[0]), Source(operands[1], 8));
    return EndControl(i);
  }
  const bool returns = i.op >= Op::kMbarrierArrive;
  Place place;
  const uint32_t at = EffectiveAddress(i, operands[returns ? 1 : 0], &place);
  const uint32_t next = returns ? 2 : 1;
  const uint32_t d = returns ? Dest(operands[0]) : sink_;
  const uint32_t word = i.count > next ? Source(operands[next], 4) : Constant(4, 1);
  Inst inst;
  switch (i.op) {
    case Op::kMbarrierInit:
      inst.run = MbarrierInit;
      break;
    case Op::kMbarrierExpectTx:
    case Op::kMbarrierCompleteTx:
      inst.run = MbarrierTransfer;
      inst.imm = i.op == Op::kMbarrierCompleteTx;
      break;
    case Op::kMbarrierArrive:
    case Op::kMbarrierArriveDrop:
      inst.run = MbarrierArrive;
      inst.imm = (i.Has(ptx::kExpectTx) ? 1 : 0) | (i.op == Op::kMbarrierArriveDrop ? 2 : 0);
      break;
    case Op::kMbarrierTestWait:
    case Op::kMbarrierTryWait:
      inst.run = MbarrierWait;
      inst.imm = (i.Has(ptx::kParity) ? 1 : 0) | (i.op == Op::kMbarrierTryWait ? 2 : 0);
      break;
    case Op::kCpAsyncMbarrier:  // adds the arrival that it makes, unless told not to
      inst.run = i.Has(ptx::kNoIncrement) ? MbarrierArrive : Nothing;
      break;
    default:  // mbarrier.inval
      inst.run = Nothing;
      break;
  }
  const bool token =
      (i.op == Op::kMbarrierTestWait || i.op == Op::kMbarrierTryWait) && !i.Has(ptx::kParity);
  Inst& out = Emit(inst.run, d, at, token ? Source(operands[next], 8) : word);
  out.imm = inst.imm;
  out.aux = static_cast<uint32_t>(place.space);
  EndControl(i);
}

// Bytes have come for the mbarrier at `address`.
void FunctionTranslator::Transferred(const Instruction& i, const Operand& address, uint32_t bytes) {
  Instruction barrier = i;
  barrier.space = Space::kShared;
  Place place;
  const uint32_t at = EffectiveAddress(barrier, address, &place);
  Inst& inst = Emit(MbarrierTransfer, 0, at, bytes);
  inst.imm = 1;
  inst.aux = static_cast<uint32_t>(place.space);
}

// st.async and red.async: [to], value, [mbarrier]
void FunctionTranslator::AsyncAccess(const Instruction& i) {
  Instruction access = i;
  access.op = i.op == Op::kStAsync ? Op::kSt : Op::kRed;
  access.flags |= ptx::kVolatile;
  access.count = 2;
  BeginControl(i);
  access.op == Op::kSt ? LoadStore(access) : Atomic(access);
  if (i.count > 2) {
    Transferred(i, Operands(i)[2], Constant(4, uint64_t{i.vector} * ptx::Bytes(i.type)));
  }
  EndControl(i);
}

// [to], [from], bytes, [mbarrier]
void FunctionTranslator::BulkCopy(const Instruction& i) {
  const Operand* operands = Operands(i);
  BeginControl(i);
  const bool reduces = i.op == Op::kCpReduceBulk;
  if (!reduces && i.Has(ptx::kHasMode)) {  // groups and prefetches: what was copied is there
    Emit(Nothing);
    return EndControl(i);
  }
  Instruction source = i;
  source.space = i.space2;
  Place to_place, from_place;
  const uint32_t to = EffectiveAddress(i, operands[0], &to_place);
  const uint32_t from = EffectiveAddress(source, operands[1], &from_place);
  const uint32_t bytes = Source(operands[2], 4);
  Inst& inst = Emit(reduces ? ReduceBulk : CopyBulk, 0, to, from, bytes);
  inst.imm = static_cast<uint64_t>(to_place.space) | static_cast<uint64_t>(from_place.space) << 8;
  inst.aux = i.mode | static_cast<uint32_t>(i.type) << 8;
  if (reduces && ptx::IsFloat(i.type)) kernel_->in_order = true;
  if (i.count > 3) Transferred(i, operands[3], bytes);
  EndControl(i);
}

void FunctionTranslator::Stack(const Instruction& i) {
  const Operand* operands = Operands(i);
  const uint32_t bytes = ptx::Bytes(i.type);
  kernel_->allocates = true;
  if (i.op == Op::kAlloca) {
    const uint32_t align = i.count > 2 ? static_cast<uint32_t>(operands[2].bits) : 8;
    Inst& inst = Emit(Alloca, Dest(operands[0]), Source(operands[1], bytes));
    inst.imm = align;
    inst.aux = bytes;
  } else if (i.op == Op::kStacksave) {
    Emit(StackSave, Dest(operands[0])).aux = bytes;
  } else {
    Emit(StackRestore, 0, Source(operands[0], bytes)).aux = bytes;
  }
}

// Everything that the handlers need to know is in imm: see parts.cc.
void FunctionTranslator::Video(const Instruction& i) {
  const Operand* o = Operands(i);
  VideoPlan plan = {};
  const bool compares = i.op == Op::kVset || i.op == Op::kVset2 || i.op == Op::kVset4;
  const bool unsigned_d = compares || !ptx::IsSigned(i.type);
  const Type a_type = compares ? i.type : i.type2, b_type = compares ? i.type2 : i.type3;
  plan.op = static_cast<uint8_t>(static_cast<int>(i.op) - static_cast<int>(Op::kVadd));
  plan.d_signed = !unsigned_d;
  plan.a_signed = ptx::IsSigned(a_type);
  plan.b_signed = ptx::IsSigned(b_type);
  plan.saturates = i.Has(ptx::kSat);
  plan.wraps = i.Has(ptx::kWrap);
  plan.plus_one = i.Has(ptx::kPlusOne);
  plan.combine = static_cast<uint8_t>(i.combine);
  plan.mode = i.mode;
  plan.d_part = o[0].kind == Operand::Kind::kRegister ? static_cast<uint8_t>(o[0].bits) : 0;
  plan.a_part = o[1].kind == Operand::Kind::kRegister ? static_cast<uint8_t>(o[1].bits) : 0;
  plan.b_part = o[2].kind == Operand::Kind::kRegister ? static_cast<uint8_t>(o[2].bits) : 0;
  const uint32_t a = Source(o[1], 4), b = Source(o[2], 4);
  const uint32_t c = i.count > 3 ? Source(o[3], 4) : Constant(4, 0);
  Inst& inst = Emit(VideoHandler(i.op), Dest(o[0]), a, b, c);
  inst.imm = PackVideo(plan);
}

}  // namespace softgpu::exec
