// Instructions that the parser adds to those of the text, where a form of PTX stands for several of
// them. Their operands have the instruction's types, so they need no check.
#pragma once

#include <string_view>
#include <vector>

#include "softgpu/ptx/ir.h"

namespace softgpu::ptx {

Operand NewRegister(Type type, Function* function);

// The address of a variable of the function's own.
Operand AddressOf(uint32_t symbol);

// Behind the last instruction, and before it: that is the one which is being parsed.
void Append(std::string_view mnemonic, int line, const std::vector<Operand>& operands,
            Function* function);
void Insert(std::string_view mnemonic, int line, const std::vector<Operand>& operands,
            Function* function);

}  // namespace softgpu::ptx
