// Expressions (address_expression.h) of the addresses that an entry computes. Internal to replay/.
//
// A register has an expression when exactly one instruction sets it and that instruction has no
// guard. Counters of loops have none, and neither have registers of functions that are called.
// Thread safety: one thread.
#pragma once

#include <vector>

#include "replay/address_expression.h"
#include "softgpu/ptx/ir.h"

namespace replay {

class AddressTerms {
 public:
  // `function` is an entry and outlives this object; terms are added to `expressions`.
  AddressTerms(const softgpu::ptx::Function& function, Expressions* expressions);

  // Of a register, an immediate, or an address with its offset. kNoTerm: not known.
  TermIndex Of(const softgpu::ptx::Operand& operand, uint8_t bits);
  // The one instruction that sets the register, without a guard. Null: there are several, or none.
  const softgpu::ptx::Instruction* SetterOf(uint32_t index) const { return setters_[index]; }

 private:
  static constexpr TermIndex kNotYet = ~0u - 1;

  TermIndex OfRegister(uint32_t index);
  TermIndex OfInstruction(const softgpu::ptx::Instruction& i);
  TermIndex OfProduct(const softgpu::ptx::Instruction& i);
  TermIndex OfConversion(const softgpu::ptx::Instruction& i);
  TermIndex OfParameter(const softgpu::ptx::Instruction& i);
  TermIndex OfTwo(const softgpu::ptx::Instruction& i, Term term);
  TermIndex Binary(Term term, const softgpu::ptx::Type& type, TermIndex left, TermIndex right);
  TermIndex OfSpecial(uint32_t special, uint8_t bits);

  const softgpu::ptx::Function& function_;
  Expressions* const expressions_;
  std::vector<const softgpu::ptx::Instruction*> setters_;  // by register; null: none or several
  std::vector<TermIndex> terms_;                           // by register
  int depth_ = 0;
};

}  // namespace replay
