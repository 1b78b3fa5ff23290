#include "replay/arithmetic.h"

#include <algorithm>
#include <string_view>

#include "softgpu/ptx/instruction_table.h"

namespace replay {

using softgpu::ptx::Function;
using softgpu::ptx::Instruction;
using softgpu::ptx::Op;
using softgpu::ptx::Operand;
using softgpu::ptx::Symbol;

Arithmetic ArithmeticOf(Op op) {
  switch (op) {
    case Op::kAdd:
    case Op::kSub:
    case Op::kAddc:
    case Op::kSubc:
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor:
    case Op::kNot:
    case Op::kNeg:
    case Op::kLop3:
    case Op::kPrmt:
    case Op::kBfi:
    case Op::kShf:
      return Arithmetic::kSum;
    case Op::kSelp:
    case Op::kSlct:
    case Op::kMin:
    case Op::kMax:
      return Arithmetic::kChoice;
    case Op::kMad:
    case Op::kMadc:
    case Op::kMad24:
      return Arithmetic::kProductSum;
    case Op::kCvt:
    case Op::kCvta:
    case Op::kMapa:
    case Op::kShfl:
      return Arithmetic::kCopy;
    default:
      return Arithmetic::kOther;
  }
}

const Symbol& SymbolOf(const softgpu::ptx::KernelImpl& kernel, const Function& function,
                       const Operand& operand) {
  return operand.module_scope ? kernel.module().symbols[operand.index]
                              : function.symbols[operand.index];
}

bool IsKernelParameter(const Function& function, const Operand& operand) {
  return function.entry && operand.kind == Operand::Kind::kSymbol && !operand.module_scope &&
         operand.index < function.parameters.size();
}

uint32_t BytesOf(const Instruction& i, const Operand& data) {
  const bool vector = data.kind == Operand::Kind::kVector;
  return softgpu::ptx::Bytes(i.type) * (vector ? data.count : 1);
}

uint32_t ResultsOf(const Instruction& i) {
  const std::string_view signature = softgpu::ptx::RowOf(i.op).signature;
  const std::string_view results = signature.substr(0, signature.find('='));
  return std::min<uint32_t>(
      i.count, static_cast<uint32_t>(std::count_if(results.begin(), results.end(),
                                                   [](char c) { return c != '[' && c != ']'; })));
}

}  // namespace replay
