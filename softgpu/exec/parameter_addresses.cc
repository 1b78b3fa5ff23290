#include "softgpu/exec/parameter_addresses.h"

#include <algorithm>

namespace softgpu::exec {
namespace {

using ptx::Instruction;
using ptx::Op;
using ptx::Operand;

// Each register's writes, as far as they matter: more than one are as bad as many.
class Writes {
 public:
  explicit Writes(const ptx::Function& function) : f_(function), counts_(f_.registers.size()) {
    for (const Instruction& i : f_.instructions) CountIn(i);
  }
  bool Once(uint32_t reg) const { return counts_[reg] == 1; }

 private:
  static constexpr uint8_t kMany = 2;

  static bool OnlyReads(Op op) {
    return op == Op::kLd || op == Op::kLdu || op == Op::kMov || op == Op::kAdd || op == Op::kCvta;
  }

  void Count(uint32_t reg, uint8_t times) {
    if (reg >= counts_.size()) return;  // none
    counts_[reg] = static_cast<uint8_t>(std::min<int>(counts_[reg] + times, kMany));
  }

  // In a place where an instruction may write, in ways that are not looked at further.
  void CountOperand(const Operand& operand, uint8_t times) {
    if (operand.kind == Operand::Kind::kRegister) Count(operand.index, times);
    if (operand.kind == Operand::Kind::kVector) {
      for (uint32_t k = 0; k < operand.count; ++k) {
        CountOperand(f_.operands[operand.index + k], times);
      }
    }
    Count(operand.second, kMany);
  }

  void CountIn(const Instruction& i) {
    const Operand* const operands = f_.Operands(i);
    const bool known = OnlyReads(i.op);
    for (uint32_t k = 0; k < i.count; ++k) {
      if (!known) {
        CountOperand(operands[k], kMany);
      } else if (k == 0) {
        // In other lanes than a guard's the register holds what it held.
        CountOperand(operands[k], i.guard == ptx::kNoIndex ? 1 : kMany);
      }
    }
  }

  const ptx::Function& f_;
  std::vector<uint8_t> counts_;
};

}  // namespace

std::vector<uint64_t> ParameterAddresses(const ptx::Function& function) {
  std::vector<uint64_t> offsets(function.registers.size(), kNoParameter);
  if (!function.entry) return offsets;
  const Writes writes(function);
  for (const Instruction& i : function.instructions) {
    if (i.op != Op::kMov || ptx::Bits(i.type) != 64) continue;
    const Operand& to = function.Operands(i)[0];
    const Operand& from = function.Operands(i)[1];
    const bool parameter = from.kind == Operand::Kind::kSymbol && !from.module_scope &&
                           from.index < function.parameters.size();
    if (to.kind != Operand::Kind::kRegister || !parameter || !writes.Once(to.index)) continue;
    offsets[to.index] = function.symbols[from.index].offset + from.bits;
  }
  return offsets;
}

}  // namespace softgpu::exec
