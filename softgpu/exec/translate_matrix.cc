// mma, wmma and the instructions that move matrices.
#include <cstring>

#include "softgpu/exec/check.h"
#include "softgpu/exec/translate.h"

namespace softgpu::exec {

using ptx::Instruction;
using ptx::Operand;
using ptx::Role;

void FunctionTranslator::PlaceFragment(const Operand& operand, uint32_t* registers) const {
  const bool vector = operand.kind == Operand::Kind::kVector;
  for (uint32_t k = 0; k < (vector ? operand.count : 1); ++k) {
    registers[k] = Dest(vector ? f_.operands[operand.index + k] : operand);
  }
}

void FunctionTranslator::Matrix(const Instruction& i) {
  const Operand* operands = Operands(i);
  MatrixPlan plan;
  BeginControl(i);
  plan.transposes = i.Has(ptx::kTranspose);
  if (i.op == Op::kMovmatrix) {
    Emit(TransposeMatrix, Dest(operands[0]), Source(operands[1], 4));
    return EndControl(i);
  }
  if (i.op != Op::kMma) {
    const bool is_store = i.op == Op::kStmatrix;
    PlaceFragment(operands[is_store ? 1 : 0], plan.d);
    const Place place = PlaceOf(i, operands[is_store ? 0 : 1]);
    plan.narrow_address = place.narrow;
    plan.space = static_cast<uint8_t>(place.space);
    plan.shape.d = i.vector;
    MemoryShape shape = {};
    shape.element_bytes = 16;
    shape.vector = 1;
    if (kernel_->checked && !is_store) {
      CheckBefore(place, shape, plan.d, false);
      Inst& check = out_->code.back();  // further lanes hold no address
      check.inner = check.run;
      check.run = Guarded;
      check.guard = Constant(4, (1ull << 8 * i.vector) - 1);
    }
    Inst& inst = Emit(is_store ? StoreMatrix : LoadMatrix, 0, place.reg);
    inst.imm = place.offset;
    inst.aux = static_cast<uint32_t>(out_->matrices.size());
  } else {
    PlaceFragment(operands[0], plan.d);
    PlaceFragment(operands[1], plan.a);
    PlaceFragment(operands[2], plan.b);
    PlaceFragment(operands[3], plan.c);
    plan.shape = ptx::ShapeOf(i);
    plan.a_type = i.type2;
    plan.b_type = i.type3;
    plan.c_type = i.type4;
    plan.d_type = i.type;
    plan.combine = i.combine;
    plan.saturates = i.Has(ptx::kSatFinite);
    Emit(Mma).aux = static_cast<uint32_t>(out_->matrices.size());
  }
  out_->matrices.push_back(plan);
  EndControl(i);
}

void FunctionTranslator::Wmma(const Instruction& i) {
  const Operand* operands = Operands(i);
  const ptx::MmaShape shape = static_cast<ptx::MmaShape>(i.mode);
  WmmaPlan plan;
  plan.saturates = i.Has(ptx::kSatFinite);
  plan.combine = i.combine;
  plan.column_major = i.Has(ptx::kCol);
  BeginControl(i);
  if (i.op == Op::kWmmaMma) {
    const ptx::WmmaTypes types = ptx::TypesOfWmma(i);
    plan.fragment = ptx::FragmentOf(shape, Role::kC, types.d);
    plan.a = ptx::FragmentOf(shape, Role::kA, types.a);
    plan.b = ptx::FragmentOf(shape, Role::kB, types.b);
    plan.c = ptx::FragmentOf(shape, Role::kC, types.c);
    PlaceFragment(operands[0], plan.registers);
    PlaceFragment(operands[1], plan.a_registers);
    PlaceFragment(operands[2], plan.b_registers);
    PlaceFragment(operands[3], plan.c_registers);
    Emit(WmmaMultiply).aux = static_cast<uint32_t>(out_->wmmas.size());
  } else {
    const bool is_store = i.op == Op::kWmmaStoreD;
    const Role role = i.op == Op::kWmmaLoadA   ? Role::kA
                      : i.op == Op::kWmmaLoadB ? Role::kB
                                               : Role::kC;
    plan.fragment = ptx::FragmentOf(shape, role, i.type);
    PlaceFragment(operands[is_store ? 1 : 0], plan.registers);
    const Place place = PlaceOf(i, operands[is_store ? 0 : 1]);
    plan.narrow_address = place.narrow;
    plan.space = static_cast<uint8_t>(place.space);
    plan.has_stride = i.count > 2;
    const uint32_t stride = plan.has_stride ? Source(operands[2], 4) : 0;
    Inst& inst = Emit(is_store ? WmmaStore : WmmaLoad, 0, place.reg, stride);
    inst.imm = place.offset;
    inst.aux = static_cast<uint32_t>(out_->wmmas.size());
  }
  out_->wmmas.push_back(plan);
  EndControl(i);
}

}  // namespace softgpu::exec
