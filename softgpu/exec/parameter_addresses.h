// Registers that hold the address of a kernel's parameter, and nothing else: nvcc makes such
// registers for structures that a kernel hands on by reference.
//
// A load by way of one reads the same bytes in all lanes, as a load that names the parameter does.
// Pure. Thread safety: a function without state.
#pragma once

#include <cstdint>
#include <vector>

#include "softgpu/ptx/ir.h"

namespace softgpu::exec {

inline constexpr uint64_t kNoParameter = ~uint64_t{0};

// For each register of `function` the offset in the parameters that it holds wherever it holds
// anything, or kNoParameter. Such a register has a single mov that writes, and loads, moves
// and additions that read; a register in any other instruction is left out.
std::vector<uint64_t> ParameterAddresses(const ptx::Function& function);

}  // namespace softgpu::exec
