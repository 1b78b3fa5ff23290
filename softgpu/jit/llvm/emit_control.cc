// Branches, joins and shuffles.
#include <cstddef>

#include "softgpu/jit/llvm/emit.h"

namespace softgpu::jit {

using exec::kLanes;
using exec::Warp;

// From the end of instruction `from` to `to`; backwards only while there is fuel.
void Emitter::GoTo(uint32_t from, uint32_t to) {
  if (to > from) {
    b_.CreateBr(blocks_[to]);
    return;
  }
  Value* at = WarpField(offsetof(Warp, fuel), b_.getInt32Ty());
  Value* left = b_.CreateSub(b_.CreateLoad(b_.getInt32Ty(), at), b_.getInt32(1));
  b_.CreateStore(left, at);
  llvm::BasicBlock* empty = NewBlock("empty");
  b_.CreateCondBr(b_.CreateICmpSGT(left, b_.getInt32(0)), blocks_[to], empty);
  b_.SetInsertPoint(empty);
  Leave(from);
}

void Emitter::EmitBranch(uint32_t n) {
  const ProgramInst& i = flow_.program.code[n];
  if (i.step == Step::kBranch) return GoTo(n, i.target);
  Value* guard = ReadScalar({i.guard & ~1u, Kind::kPred});
  if ((i.guard & 1) != 0) guard = b_.CreateNot(guard);
  llvm::BasicBlock* taken = NewBlock("taken");
  if (!flow_.Diverges(n)) {
    b_.CreateCondBr(guard, taken, blocks_[n + 1]);
    b_.SetInsertPoint(taken);
    return GoTo(n, i.target);
  }
  llvm::BasicBlock* some = NewBlock("some");
  llvm::BasicBlock* split = NewBlock("split");
  Value* lanes = b_.CreateAnd(Bits(guard), mask_);
  b_.CreateCondBr(b_.CreateICmpEQ(lanes, b_.getInt32(0)), blocks_[n + 1], some);
  b_.SetInsertPoint(some);
  b_.CreateCondBr(b_.CreateICmpEQ(lanes, mask_), taken, split);
  b_.SetInsertPoint(split);
  Leave(n);
  b_.SetInsertPoint(taken);
  GoTo(n, i.target);
}

// Lanes that wait elsewhere may come here: the interpreter sorts that out.
void Emitter::EmitJoin(uint32_t n) {
  llvm::BasicBlock* diverged = NewBlock("diverged");
  Value* parked = LoadWarp(offsetof(Warp, parked_count), b_.getInt32Ty());
  b_.CreateCondBr(b_.CreateICmpEQ(parked, b_.getInt32(0)), blocks_[n + 1], diverged);
  b_.SetInsertPoint(diverged);
  Leave(n);
}

void Emitter::EmitShuffle(uint32_t n) { Leave(n); }

}  // namespace softgpu::jit
