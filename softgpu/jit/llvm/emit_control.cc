// Warps in turn, branches, joins, shuffles and ends.
#include <cstddef>

#include "softgpu/exec/block.h"
#include "softgpu/jit/llvm/emit.h"

namespace softgpu::jit {

using exec::kLanes;
using exec::Warp;

// The head of the loop over warps.
void Emitter::BeginWarp() {
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* head = NewBlock("warp");
  next_warp_ = NewBlock("next");
  b_.CreateBr(head);
  b_.SetInsertPoint(next_warp_);
  finished_ = b_.CreatePHI(b_.getInt8PtrTy(), 2);
  b_.SetInsertPoint(head);
  warp_phi_ = b_.CreatePHI(b_.getInt8PtrTy(), 2);
  warp_phi_->addIncoming(function_->getArg(1), before);
  warp_ = warp_phi_;
  // Nothing comes over from the warp before.
  for (llvm::AllocaInst* variable : variables_)
    b_.CreateStore(llvm::UndefValue::get(variable->getAllocatedType()), variable);
  for (const auto& [n, settled] : settled_) b_.CreateStore(b_.getFalse(), settled.done);
  for (const auto& [n, loop] : loops_by_lane_) {
    Value* wanted = LoadWarp(offsetof(Warp, lockstep), b_.getInt8Ty());
    b_.CreateStore(b_.CreateICmpNE(wanted, b_.getInt8(0)), loop.gave_up);
  }
}

// Goes on with the warp after one that finished.
void Emitter::EndWarps() {
  b_.SetInsertPoint(next_warp_);
  Value* next = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), warp_, sizeof(Warp));
  llvm::BasicBlock* last = NewBlock("last");
  llvm::BasicBlock* another = NewBlock("another");
  b_.CreateCondBr(b_.CreateICmpEQ(next, function_->getArg(5)), last, another);
  b_.SetInsertPoint(last);
  b_.CreateRet(finished_);
  b_.SetInsertPoint(another);
  b_.CreateStore(next, function_->getArg(4));
  warp_phi_->addIncoming(next, another);
  b_.CreateBr(warp_phi_->getParent());
}

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
  Value* lanes = b_.CreateAnd(Bits(guard), Mask());
  b_.CreateCondBr(b_.CreateICmpEQ(lanes, b_.getInt32(0)), blocks_[n + 1], some);
  b_.SetInsertPoint(some);
  b_.CreateCondBr(b_.CreateICmpEQ(lanes, Mask()), taken, split);
  b_.SetInsertPoint(split);
  EmitSplit(n, lanes);
  b_.SetInsertPoint(taken);
  GoTo(n, i.target);
}

// Which registers the lanes that leave a loop need and the loop does not change: they go into the
// frame once, not each time that some lanes leave.
void Emitter::FindSettled() {
  for (uint32_t n = 0; n < flow_.program.code.size(); ++n) {
    const uint32_t head = flow_.program.code[n].target;
    if (!flow_.Diverges(n) || head > n) continue;
    Set changed(flow_.registers.size());
    for (uint32_t k = head; k <= n; ++k) {
      for (uint32_t reg : WrittenBy(k)) changed.Add(reg);
    }
    Settled settled = {b_.CreateAlloca(b_.getInt1Ty()), Set(flow_.registers.size())};
    for (uint32_t reg = 0; reg < flow_.registers.size(); ++reg) {
      const bool only_view = flow_.At(flow_.registers[reg].offset).size() == 1;
      if (flow_.dirty[n].Has(reg) && flow_.live[n + 1].Has(reg) && !changed.Has(reg) && only_view)
        settled.registers.Add(reg);
    }
    settled_.emplace(n, settled);
  }
}

// Spills those of branch `n`, unless they have been since they were written.
void Emitter::Settle(uint32_t n) {
  const Settled& settled = settled_.at(n);
  llvm::BasicBlock* first = NewBlock("settle");
  llvm::BasicBlock* done = NewBlock("settled");
  Expect(b_.CreateLoad(b_.getInt1Ty(), settled.done), done, first);
  b_.SetInsertPoint(first);
  for (uint32_t reg = 0; reg < flow_.registers.size(); ++reg) {
    if (settled.registers.Has(reg)) Spill(reg);
  }
  b_.CreateStore(b_.getTrue(), settled.done);
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

// As BranchIfBack() of exec/control.cc where the lanes that leave the loop join others that wait at
// `wait` already; goes on where they don't.
void Emitter::EmitLeavesLoop(uint32_t wait, uint32_t stay, Value* taken) {
  using exec::Group;
  llvm::Type *byte = b_.getInt8PtrTy(), *word = b_.getInt32Ty();
  Value* count = LoadWarp(offsetof(Warp, parked_count), word);
  Value* index = b_.CreateZExt(b_.CreateSub(count, b_.getInt32(1)), b_.getInt64Ty());
  Value* fuel = b_.CreateSub(LoadWarp(offsetof(Warp, fuel), word), b_.getInt32(1));
  llvm::BasicBlock* some = NewBlock("others");
  llvm::BasicBlock* joins = NewBlock("joins");
  llvm::BasicBlock* alone = NewBlock("alone");
  b_.CreateCondBr(
      b_.CreateAnd(b_.CreateICmpNE(count, b_.getInt32(0)), b_.CreateICmpSGT(fuel, b_.getInt32(0))),
      some, alone);
  b_.SetInsertPoint(some);
  Value* group =
      b_.CreateInBoundsGEP(b_.getInt8Ty(), WarpField(offsetof(Warp, parked), b_.getInt8Ty()),
                           b_.CreateMul(index, b_.getInt64(sizeof(Group))));
  const auto field = [&](size_t offset, llvm::Type* type) {
    return b_.CreateLoad(type, Pointer(group, offset, type));
  };
  Value* same = b_.CreateAnd(
      b_.CreateICmpEQ(field(offsetof(Group, pc), byte), CodeAt(wait)),
      b_.CreateICmpEQ(field(offsetof(Group, frame), byte), LoadWarp(offsetof(Warp, frame), byte)));
  Value* ready = b_.CreateAnd(
      b_.CreateICmpEQ(field(offsetof(Group, wait), b_.getInt8Ty()),
                      b_.getInt8(static_cast<uint8_t>(exec::Wait::kReady))),
      b_.CreateICmpEQ(field(offsetof(Group, released), b_.getInt8Ty()), b_.getInt8(0)));
  b_.CreateCondBr(b_.CreateAnd(same, ready), joins, alone);
  b_.SetInsertPoint(joins);
  Value* mask = Pointer(group, offsetof(Group, mask), word);
  Value* leave = b_.CreateXor(taken, Mask());
  b_.CreateStore(b_.CreateOr(b_.CreateLoad(word, mask), leave), mask);
  b_.CreateStore(fuel, WarpField(offsetof(Warp, fuel), word));
  b_.CreateStore(taken, WarpField(offsetof(Warp, mask), word));
  b_.CreateStore(taken, lanes_);
  b_.CreateBr(blocks_[stay]);
  b_.SetInsertPoint(alone);
}

// Only some lanes take branch `n`: its handler sets aside those that run later, and the others stay
// here. What is uniform among all lanes is so among fewer.
void Emitter::EmitSplit(uint32_t n, Value* taken) {
  const ProgramInst& i = flow_.program.code[n];
  const bool back = i.target <= n;
  const uint32_t stay = back ? i.target : n + 1, wait = back ? n + 1 : i.target;
  const uint32_t guard = flow_.Find({i.guard & ~1u, Kind::kPred});
  if (back) Settle(n);
  for (uint32_t reg = 0; reg < flow_.registers.size(); ++reg) {
    const bool settled = back && settled_.at(n).registers.Has(reg);
    if (flow_.dirty[n].Has(reg) && flow_.live[wait].Has(reg) && !settled) Spill(reg);
  }
  if (back) EmitLeavesLoop(wait, stay, taken);
  if (guard != Flow::kNone && flow_.dirty[n].Has(guard) && !flow_.live[wait].Has(guard))
    Spill(guard);
  Value* next = RunHandler(n);
  b_.CreateStore(back ? taken : b_.CreateXor(taken, Mask()), lanes_);
  llvm::BasicBlock* stopped = NewBlock("stopped");
  b_.CreateCondBr(b_.CreateICmpEQ(next, CodeAt(stay)), blocks_[stay], stopped);
  b_.SetInsertPoint(stopped);
  for (uint32_t reg = 0; reg < flow_.registers.size(); ++reg) {
    if (flow_.dirty[n].Has(reg) && (flow_.live[stay].Has(reg) || reg == guard)) Spill(reg);
  }
  b_.CreateRet(next);
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
  Expect(Full(), all, some);
  b_.SetInsertPoint(some);
  Leave(n);
  b_.SetInsertPoint(all);
  Value* from = ReadVector({i.a, Kind::k32});
  Write({i.d, Kind::k32}, {b_.CreateShuffleVector(from, pick), kVaryingForm});
  if (i.guard != 0)
    Write({i.guard, Kind::kPred}, {llvm::ConstantVector::get(inside), kVaryingForm});
}

// The warp comes to the end of its turn; `result` is what the handler would return.
void Emitter::Finish(Value* result) {
  finished_->addIncoming(result, b_.GetInsertBlock());
  b_.CreateBr(next_warp_);
}

// As BarSync() of exec/barrier_handlers.cc where all live lanes come in step.
void Emitter::EmitBarrier(uint32_t n) {
  const ProgramInst& i = flow_.program.code[n];
  const ProgramConstant *number = flow_.ConstantAt(i.a), *expected = flow_.ConstantAt(i.b);
  const bool whole = i.guarded == 0 && number != nullptr && number->known &&
                     number->bits < exec::kBarriers && expected != nullptr && expected->known &&
                     expected->bits == 0;
  if (!whole) return Leave(n);
  SpillFor(n);
  llvm::BasicBlock* together = NewBlock("together");
  llvm::BasicBlock* alone = NewBlock("alone");
  Value* in_step = LoadWarp(offsetof(Warp, in_step), b_.getInt8Ty());
  Value* live = LoadWarp(offsetof(Warp, live), b_.getInt32Ty());
  Expect(b_.CreateAnd(b_.CreateICmpNE(in_step, b_.getInt8(0)), b_.CreateICmpEQ(live, Mask())),
         together, alone);
  b_.SetInsertPoint(alone);
  LeaveSpilt(n);
  b_.SetInsertPoint(together);
  b_.CreateStore(b_.getInt32(n + 1), WarpField(offsetof(Warp, left), b_.getInt32Ty()));
  b_.CreateStore(Mask(), WarpField(offsetof(Warp, left_mask), b_.getInt32Ty()));
  b_.CreateStore(b_.getInt64(0), WarpField(offsetof(Warp, access_form), b_.getInt64Ty()));
  b_.CreateStore(CodeAt(n), WarpField(offsetof(Warp, pc), b_.getInt8PtrTy()));
  const uint64_t at_barrier = reinterpret_cast<uint64_t>(exec::kAtBarrier);
  Finish(b_.CreateIntToPtr(b_.getInt64(at_barrier), b_.getInt8PtrTy()));
}

// As ExitLanes() of exec/schedule.cc where all live lanes of a kernel end and nobody waits.
void Emitter::EmitExit(uint32_t n) {
  const ProgramInst& i = flow_.program.code[n];
  if (i.guarded != 0) return Leave(n);
  llvm::Type* byte = b_.getInt8PtrTy();
  llvm::BasicBlock* together = NewBlock("ends");
  llvm::BasicBlock* apart = NewBlock("apart");
  Value* frame = LoadWarp(offsetof(Warp, frame), byte);
  Value* parent = b_.CreateLoad(byte, Pointer(frame, offsetof(exec::Frame, parent), byte));
  Value* waits = b_.CreateLoad(b_.getInt32Ty(),
                               Pointer(LoadWarp(offsetof(Warp, block), byte),
                                       offsetof(exec::Block, barriers_in_use), b_.getInt32Ty()));
  Value* live = LoadWarp(offsetof(Warp, live), b_.getInt32Ty());
  Value* all = b_.CreateAnd(b_.CreateICmpEQ(live, Mask()), b_.CreateIsNull(parent));
  Expect(b_.CreateAnd(all, b_.CreateICmpEQ(waits, b_.getInt32(0))), together, apart);
  b_.SetInsertPoint(apart);
  Leave(n);
  b_.SetInsertPoint(together);
  b_.CreateStore(b_.getInt32(0), WarpField(offsetof(Warp, live), b_.getInt32Ty()));
  b_.CreateStore(b_.getInt32(0), WarpField(offsetof(Warp, mask), b_.getInt32Ty()));
  b_.CreateStore(b_.getInt8(static_cast<uint8_t>(exec::Stop::kDone)),
                 WarpField(offsetof(Warp, stop), b_.getInt8Ty()));
  Finish(llvm::ConstantPointerNull::get(b_.getInt8PtrTy()));
}

}  // namespace softgpu::jit
