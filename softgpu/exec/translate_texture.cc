// tex, tld4, suld, sust, txq, suq.
#include "softgpu/exec/translate.h"

namespace softgpu::exec {

using ptx::Instruction;
using ptx::Operand;

void FunctionTranslator::TextureAccess(const Instruction& i) {
  const bool stores = i.op == Op::kSust;
  const Operand& place = Operands(i)[stores ? 0 : 1];
  const Operand& data = Operands(i)[stores ? 1 : 0];
  TexturePlan plan;
  plan.geometry = static_cast<ptx::Geometry>(i.mode);
  plan.flags = i.flags;
  plan.integer = !ptx::IsFloat(i.type2);
  if (i.op == Op::kTld4) {
    plan.gathers =
        static_cast<int8_t>((i.Has(ptx::kComponent1) ? 1 : 0) + (i.Has(ptx::kComponent2) ? 2 : 0));
  }
  plan.vector = i.vector;
  plan.bytes = static_cast<uint8_t>(ptx::Bytes(i.type));
  plan.object = offset_of_[f_.operands[place.index].index];
  for (uint32_t k = 1; k < place.count; ++k) {
    plan.coordinates[k - 1] = Source(f_.operands[place.index + k], 4);
  }
  uint32_t registers[4] = {sink_, sink_, sink_, sink_};
  for (uint32_t k = 0; k < i.vector; ++k) {
    const Operand& element =
        data.kind == Operand::Kind::kVector ? f_.operands[data.index + k] : data;
    const uint32_t bytes = RegisterBytes(element, std::max<uint32_t>(plan.bytes, 2));
    plan.register_bytes[k] = static_cast<uint8_t>(bytes);
    registers[k] = stores ? Source(element, bytes) : Dest(element);
  }
  const Handler handler = stores ? SurfaceStore : i.op == Op::kSuld ? SurfaceLoad : TextureFetch;
  Inst& inst = Emit(handler, registers[0], plan.object, registers[1], registers[2]);
  inst.e = registers[3];
  inst.aux = static_cast<uint32_t>(out_->textures.size());
  out_->textures.push_back(plan);
}

void FunctionTranslator::TextureSizeOf(const Instruction& i) {
  const Operand& object = Operands(i)[1];
  if (object.kind != Operand::Kind::kRegister || ptx::Bits(f_.registers[object.index]) != 64) {
    Emit(Unimplemented);
    return;
  }
  const Handler handler = i.op == Op::kSuq ? SurfaceSize : TextureSize;
  Emit(handler, Dest(Operands(i)[0]), offset_of_[object.index]).imm = i.mode;
}

}  // namespace softgpu::exec
