// The opcodes: one per row of instructions.inc, in its order.
#pragma once

#include <cstdint>

namespace softgpu::ptx {

enum class Op : uint16_t {
#define PTX_INSTRUCTION(name, id, ...) id,
#include "softgpu/ptx/instructions.inc"
  kCount
};

}  // namespace softgpu::ptx
