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
  Expect(b_.CreateICmpSGT(left, b_.getInt32(0)), blocks_[to], empty);
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
  Expect(b_.CreateICmpEQ(parked, b_.getInt32(0)), blocks_[n + 1], diverged);
  b_.SetInsertPoint(diverged);
  Leave(n);
}

// As Shfl() of exec/warp_operations.cc, where every lane's source is known.
void Emitter::EmitShuffle(uint32_t n) {
  if (!flow_.ShufflesByPattern(n)) return Leave(n);
  const ProgramInst& i = flow_.program.code[n];
  const uint32_t delta = flow_.ConstantAt(i.b)->bits & 31;
  const uint32_t clamp = flow_.ConstantAt(i.c)->bits & 31;
  const uint32_t segment = flow_.ConstantAt(i.c)->bits >> 8 & 31;
  std::vector<int> pick;
  std::vector<llvm::Constant*> inside;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t top = (lane & segment) | (clamp & ~segment);
    uint32_t from = lane;
    bool within = false;
    switch (static_cast<ptx::ShflMode>(i.imm)) {
      case ptx::ShflMode::kUp:
        from = lane - delta;
        within = lane >= delta + top;
        break;
      case ptx::ShflMode::kDown:
        from = lane + delta;
        within = from <= top;
        break;
      case ptx::ShflMode::kBfly:
        from = lane ^ delta;
        within = from <= top;
        break;
      case ptx::ShflMode::kIdx:
        from = (lane & segment) | (delta & ~segment);
        within = from <= top;
        break;
    }
    pick.push_back(static_cast<int>(within ? from : lane));
    inside.push_back(b_.getInt1(within));
  }
  llvm::BasicBlock* all = NewBlock("all");
  llvm::BasicBlock* some = NewBlock("some");
  Expect(full_, all, some);
  b_.SetInsertPoint(some);
  Leave(n);
  b_.SetInsertPoint(all);
  Value* from = ReadVector({i.a, Kind::k32});
  Write({i.d, Kind::k32}, {b_.CreateShuffleVector(from, pick), kVaryingForm});
  if (i.guard != 0)
    Write({i.guard, Kind::kPred}, {llvm::ConstantVector::get(inside), kVaryingForm});
}

}  // namespace softgpu::jit
