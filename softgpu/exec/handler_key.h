// How a decoded instruction finds its semantic function: opcode, type, a variant and a second type.
#pragma once

#include "softgpu/exec/warp.h"
#include "softgpu/ptx/op.h"
#include "softgpu/ptx/types.h"

namespace softgpu::exec {

using ptx::Op;
using ptx::Type;

// Semantics that no PTX instruction names alone; decode emits them around others.
enum class Internal : uint8_t {
  kSaturate,   // f32 or f64 to [0, 1]
  kFlush,      // f32 subnormals to zero
  kBroadcast,  // a uniform value into a register
  kLoadFast,
  kLoadShared32,
  kLoadShared64,
  kStoreFast,
  kStoreShared32,
  kStoreShared64,
  kRelu,
  kPack,
  kUnpack,  // two halves
  kFinite,  // infinities to the largest number
};

constexpr uint32_t Key(Op op, Type type, int variant = 0, Type type2 = Type::kNone) {
  return static_cast<uint32_t>(op) << 20 | static_cast<uint32_t>(variant) << 12 |
         static_cast<uint32_t>(type) << 6 | static_cast<uint32_t>(type2);
}

constexpr uint32_t Key(Internal what, Type type, int variant = 0, Type type2 = Type::kNone) {
  return 0x8000'0000u | static_cast<uint32_t>(what) << 20 | static_cast<uint32_t>(variant) << 12 |
         static_cast<uint32_t>(type) << 6 | static_cast<uint32_t>(type2);
}

// The handler for this processor, or null.
Handler FindHandler(uint32_t key);
// The key of a row, or 0 for handlers that are none.
uint32_t KeyOf(Handler handler);
// As above; where the type has no row of its own, that of the unsigned type of the same size.
Handler FindHandlerBySize(Op op, Type type, int variant = 0);

}  // namespace softgpu::exec
