#include "replay/movable_parameters.h"

#include <vector>

#include "replay/arithmetic.h"
#include "softgpu/ptx/ir.h"

namespace replay {
namespace {

using softgpu::ptx::Function;
using softgpu::ptx::Instruction;
using softgpu::ptx::Op;
using softgpu::ptx::Operand;
using softgpu::ptx::Space;

constexpr uint32_t kAddressBytes = 8;

// Whether the instruction takes the operand's bits as an address alone: it reaches the memory
// there, or adds a number.
bool IsAddressOnly(const Instruction& i, const Operand* operands, uint32_t k) {
  switch (i.op) {
    case Op::kLd:
    case Op::kLdu:
    case Op::kAtom:
      return k == 1 && operands[k].address;
    case Op::kSt:
    case Op::kRed:
      return k == 0 && operands[k].address;
    case Op::kMov:
      return operands[0].kind == Operand::Kind::kRegister &&
             operands[k].kind == Operand::Kind::kRegister;
    case Op::kCvta:
      return true;
    case Op::kAdd:
      return !i.Has(softgpu::ptx::kCarryOut);
    case Op::kSub:
      return k == 1 && !i.Has(softgpu::ptx::kCarryOut);
    case Op::kMad:
      return k == 3 && !i.Has(softgpu::ptx::kCarryOut);
    default:
      return false;
  }
}

class Observer {
 public:
  Observer(const softgpu::ptx::KernelImpl& kernel, DataFlow* flow)
      : kernel_(kernel), flow_(*flow) {}

  OriginSet Run() {
    for (const Function* function : kernel_.reachable()) {
      for (const Instruction& i : function->instructions) Visit(*function, i);
    }
    OriginSet movable = 0;
    for (size_t k = 0; k < flow_.origins().size(); ++k) {
      if (flow_.origins()[k].kind == Origin::Kind::kParameter) movable |= OriginSet{1} << k;
    }
    return movable & ~observed_;
  }

 private:
  void Visit(const Function& function, const Instruction& i) {
    const Operand* o = function.Operands(i);
    OriginSet in_sum = 0;
    for (uint32_t k = ResultsOf(i); k < i.count; ++k) {
      if (IsKernelParameter(function, o[k])) {
        ReadParameter(i, o[0], o[k]);
        continue;
      }
      const OriginSet touched = flow_.ValueOf(function, o[k]).touched();
      // An address that is added to itself moves twice as far.
      if (!IsAddressOnly(i, o, k) || (in_sum & touched) != 0) observed_ |= touched;
      in_sum |= touched;
    }
  }

  // A parameter that is not loaded as one whole address is looked at in another way.
  void ReadParameter(const Instruction& i, const Operand& to, const Operand& parameter) {
    if (i.op != Op::kLd || !parameter.address) {
      observed_ = ~OriginSet{0};
      return;
    }
    const Function& entry = kernel_.function();
    const uint64_t begin = entry.symbols[parameter.index].offset + parameter.bits;
    const uint64_t bytes = BytesOf(i, to);
    for (size_t k = 0; k < flow_.origins().size(); ++k) {
      const uint64_t at = flow_.origins()[k].index;
      if (at + kAddressBytes <= begin || begin + bytes <= at) continue;
      const bool whole = softgpu::ptx::Bytes(i.type) == kAddressBytes && at >= begin &&
                         (at - begin) % kAddressBytes == 0;
      if (!whole) observed_ |= OriginSet{1} << k;
    }
  }

  const softgpu::ptx::KernelImpl& kernel_;
  DataFlow& flow_;
  OriginSet observed_ = 0;
};

}  // namespace

OriginSet MovableParameters(const softgpu::ptx::KernelImpl& kernel, DataFlow* flow) {
  return Observer(kernel, flow).Run();
}

}  // namespace replay
