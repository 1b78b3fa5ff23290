// What PTX instructions do to addresses, for the analysis of kernel_access.h. Internal to replay/.
// Thread safety: pure.
#pragma once

#include "softgpu/ptx/ir.h"

namespace replay {

enum class Arithmetic {
  kSum,         // of all operands, or bits of them put together
  kChoice,      // one of the first two operands
  kProductSum,  // the third operand plus a product
  kCopy,        // of the first operand
  kOther,       // a number
};

Arithmetic ArithmeticOf(softgpu::ptx::Op op);

// The variable, parameter or piece of memory that an operand names. REQUIRES: kind kSymbol.
const softgpu::ptx::Symbol& SymbolOf(const softgpu::ptx::KernelImpl& kernel,
                                     const softgpu::ptx::Function& function,
                                     const softgpu::ptx::Operand& operand);
// Whether the operand names a parameter of the kernel.
bool IsKernelParameter(const softgpu::ptx::Function& function,
                       const softgpu::ptx::Operand& operand);

// How many bytes a load or store moves between memory and this operand.
uint32_t BytesOf(const softgpu::ptx::Instruction& instruction, const softgpu::ptx::Operand& data);

// How many operands come in front of the '=' of the instruction's signature.
uint32_t ResultsOf(const softgpu::ptx::Instruction& instruction);

}  // namespace replay
