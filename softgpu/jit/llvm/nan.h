// Every f32 result has one NaN, which costs a comparison and a choice after each operation. Where
// the next operation is one that does so itself, only whether its operand is a NaN matters, not
// which: such operands skip the choice. Thread safety: a function's own thread.
#pragma once

#include <llvm/IR/Function.h>

namespace softgpu::jit {

void SkipCanonicalNans(llvm::Function* function);

}  // namespace softgpu::jit
