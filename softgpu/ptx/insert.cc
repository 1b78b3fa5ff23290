#include "softgpu/ptx/insert.h"

#include <algorithm>

#include "softgpu/ptx/instruction_table.h"

namespace softgpu::ptx {

Operand NewRegister(Type type, Function* function) {
  Operand operand;
  operand.kind = Operand::Kind::kRegister;
  operand.index = static_cast<uint32_t>(function->registers.size());
  function->registers.push_back(type);
  return operand;
}

Operand AddressOf(uint32_t symbol) {
  Operand operand;
  operand.kind = Operand::Kind::kSymbol;
  operand.address = true;
  operand.index = symbol;
  return operand;
}

void Append(std::string_view mnemonic, int line, const std::vector<Operand>& operands,
            Function* function) {
  Instruction instruction;
  instruction.line = line;
  ReadMnemonic(mnemonic, &instruction);
  instruction.first = static_cast<uint32_t>(function->operands.size());
  instruction.count = static_cast<uint32_t>(operands.size());
  function->operands.insert(function->operands.end(), operands.begin(), operands.end());
  function->instructions.push_back(instruction);
}

void Insert(std::string_view mnemonic, int line, const std::vector<Operand>& operands,
            Function* function) {
  Append(mnemonic, line, operands, function);
  std::swap(function->instructions.back(), *(function->instructions.end() - 2));
}

}  // namespace softgpu::ptx
