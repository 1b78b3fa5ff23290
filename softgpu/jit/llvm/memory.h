// One load or store while it is emitted: what the files that emit accesses have in common. A value.
#pragma once

#include "softgpu/jit/llvm/emit.h"

namespace softgpu::jit {

struct Emitter::Memory {
  uint32_t n;
  const ProgramInst* inst;
  Access access;
  Result address;
  Value* lanes;  // that take part, as bits
  Value* lanes_vector;
  Value* guard;    // a vector, or null
  uint64_t bytes;  // of a lane
  llvm::Type* element;
  llvm::BasicBlock *slow, *done;
  Place Register(uint32_t k, const Operands& o) const {
    return access.is_store ? o.sources[1 + k] : o.results[k];
  }
};

}  // namespace softgpu::jit
