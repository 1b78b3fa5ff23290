// Which modifiers may stand together with which types: the ISA's rules that no signature can say.
#pragma once

#include "softgpu/ptx/ir.h"

namespace softgpu::ptx {

bool ModifiersFit(const Instruction& i);

}  // namespace softgpu::ptx
