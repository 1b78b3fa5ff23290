// Loops that lanes run one after another, each to its end and with scalar instructions, once some
// have left: those that do little but load from all over the memory. In step, each round costs all
// lanes' loads as long as one of them goes on, and fewer cache misses overlap.
//
// Nothing is stored in such a loop and nothing in it is ordered, so no lane sees when another ran.
// Where an access is not the usual kind, or the fuel ends, the lane that runs begins again: those
// that have ended wait behind the loop, and the others run it in step. A page fault has all of them
// run it in step again (FindAgain() of exec/run_block.cc), so it is the interpreter's.
#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "base/find.h"
#include "softgpu/jit/llvm/emit.h"
#include "softgpu/jit/llvm/memory.h"

namespace softgpu::jit {

using exec::Warp;

namespace {
constexpr uint32_t kInstructionsPerLoad = 4;  // with more of them, lanes in step are faster
constexpr uint32_t kFewLanes = 28;            // with more of them too
constexpr int64_t kNear = 4096;               // bytes between loads that are checked at once
}  // namespace

// Whether lanes may run the loop from `head` to the branch `last` by themselves, and with which
// registers.
bool Emitter::MayRunLaneByLane(uint32_t head, uint32_t last, LaneByLane* loop) const {
  if (!flow_.Diverges(last) || head >= last) return false;
  uint32_t loads = 0;
  Set written(flow_.registers.size());
  for (uint32_t n = head; n <= last; ++n) {
    const ProgramInst& i = flow_.program.code[n];
    const Operands& o = flow_.operands[n];
    const bool inside = i.step == Step::kRow && o.native && i.guarded == 0;
    if ((n != head && flow_.leaders[n]) || (n != last && !inside)) return false;
    Access access;
    if (n != last && AccessOf(RowOf(i.key), &access)) {
      if (access.is_store || access.shared || IsOrdered(i) || LoadsForNothing(n)) return false;
      loads += flow_.FormOf(o.sources[0]).Varies() ? 1 : 0;
    }
    for (const Place& source : o.sources) {
      const uint32_t reg = flow_.Find(source);
      if (reg != Flow::kNone && flow_.forms[reg].of != Form::Of::kUniform)
        loop->registers[reg].comes_in = flow_.live[head].Has(reg);
    }
    for (const Place& result : o.results) {
      const uint32_t reg = flow_.Find(result);
      if (reg == Flow::kNone) continue;
      written.Add(reg);
      loop->registers[reg].comes_in = flow_.live[head].Has(reg);
      loop->registers[reg].goes_out = flow_.live[last + 1].Has(reg);
    }
  }
  for (const auto& [reg, r] : loop->registers) {
    const bool crosses = r.comes_in || r.goes_out;
    if (crosses && flow_.registers[reg].kind == Kind::kPred) return false;
    if (r.goes_out && !flow_.forms[reg].Varies()) return false;
    if (flow_.At(flow_.registers[reg].offset).size() != 1) return false;
  }
  const uint32_t guard = flow_.Find({flow_.program.code[last].guard & ~1u, Kind::kPred});
  return loads * kInstructionsPerLoad >= last - head && written.Has(guard);
}

// At the function's beginning.
void Emitter::FindLaneByLane() {
  if (host_.gathers) return;
  for (uint32_t last = 0; last < flow_.program.code.size(); ++last) {
    const uint32_t head = flow_.program.code[last].target;
    LaneByLane loop = {};
    loop.last = last;
    if (!MayRunLaneByLane(head, last, &loop)) continue;
    for (auto& [reg, r] : loop.registers) {
      llvm::Type* type = ScalarType(flow_.registers[reg].kind);
      r.now = b_.CreateAlloca(type);
      if (r.goes_out) r.ended = b_.CreateAlloca(VectorOf(type));
    }
    loop.gave_up = b_.CreateAlloca(b_.getInt1Ty());
    for (llvm::AllocaInst** word : {&loop.rest, &loop.fuel, &loop.least_fuel})
      *word = b_.CreateAlloca(b_.getInt32Ty());
    loops_by_lane_.emplace(head, loop);
  }
}

// Before instruction `n`, where it is the first or the last of such a loop.
void Emitter::BeginLaneByLane(uint32_t n) {
  const ProgramInst& i = flow_.program.code[n];
  if (LaneByLane* const begins = base::FindOrNull(loops_by_lane_, n)) EmitLaneByLane(n, begins);
  const LaneByLane* const ends = base::FindOrNull(loops_by_lane_, i.target);
  if (i.step != Step::kBranchIf || ends == nullptr || ends->last != n) return;
  b_.CreateBr(ends->branch);
  b_.SetInsertPoint(ends->branch);
}

// A load by the lane that runs. The first of those from one pointer checks for all of them; they
// are added to `checked`.
void Emitter::LoadForLane(uint32_t n, uint32_t last, llvm::BasicBlock* give_up,
                          std::set<uint32_t>* checked) {
  const Memory m = MemoryOf(n);
  Value* address = Offset(m, ReadScalar(flow_.operands[n].sources[0]));
  if (checked->count(n) == 0) {
    const int64_t bytes = static_cast<int64_t>(m.bytes);
    int64_t begin = 0, end = bytes;  // from `address`
    bool moved = false;
    for (uint32_t k = n; k < last && !moved; ++k) {
      const ProgramInst& i = flow_.program.code[k];
      const int64_t distance = static_cast<int64_t>(i.imm - m.inst->imm);
      Access other;
      if (AccessOf(RowOf(i.key), &other) && i.a == m.inst->a && std::abs(distance) < kNear &&
          other.element_bytes * other.count == m.bytes && distance % bytes == 0) {
        begin = std::min(begin, distance);
        end = std::max(end, distance + bytes);
        checked->insert(k);
      }
      for (const Place& result : flow_.operands[k].results)
        moved = moved || result.offset == m.inst->a;
    }
    llvm::BasicBlock* fast = NewBlock("one");
    Value* first = b_.CreateAdd(address, b_.getInt64(static_cast<uint64_t>(begin)));
    Expect(InBounds(m, first, static_cast<uint64_t>(end - begin)), fast, give_up);
    b_.SetInsertPoint(fast);
  }
  MoveScalar(m, address);
}

// What a lane comes with: the frame has it.
void Emitter::FillLane(const LaneByLane& loop, Value* lane) {
  for (const auto& [reg, r] : loop.registers) {
    if (!r.comes_in) continue;
    const Place place = flow_.registers[reg];
    Value* offset = b_.CreateAdd(b_.CreateMul(lane, b_.getInt64(KindBytes(place.kind))),
                                 b_.getInt64(place.offset));
    llvm::Type* type = r.now->getAllocatedType();
    Value* at = b_.CreateInBoundsGEP(b_.getInt8Ty(), regs_, offset);
    b_.CreateStore(b_.CreateLoad(type, b_.CreateBitCast(at, type->getPointerTo())), r.now);
  }
}

// A lane has left the loop.
void Emitter::EndLane(const LaneByLane& loop, Value* lane) {
  const auto get = [&](llvm::AllocaInst* variable) {
    return b_.CreateLoad(variable->getAllocatedType(), variable);
  };
  for (const auto& [reg, r] : loop.registers) {
    if (!r.goes_out) continue;
    llvm::Type* type = r.now->getAllocatedType();
    Value* all = b_.CreateBitCast(r.ended, type->getPointerTo());
    b_.CreateStore(get(r.now), b_.CreateInBoundsGEP(type, all, lane));
  }
  Value* least =
      b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, get(loop.fuel), get(loop.least_fuel));
  b_.CreateStore(least, loop.least_fuel);
  Value* rest = get(loop.rest);
  rest = b_.CreateAnd(rest, b_.CreateSub(rest, b_.getInt32(1)));
  b_.CreateStore(rest, loop.rest);
}

// All lanes together again: what those that have ended left the loop with.
void Emitter::Regroup(const LaneByLane& loop, Value* fuel) {
  for (const auto& [reg, r] : loop.registers) {
    if (!r.goes_out) continue;
    Value* ended = b_.CreateLoad(r.ended->getAllocatedType(), r.ended);
    if (r.comes_in) {
      Value* rest = b_.CreateLoad(b_.getInt32Ty(), loop.rest);
      ended = b_.CreateSelect(b_.CreateBitCast(rest, VectorOf(b_.getInt1Ty())),
                              ReadVector(flow_.registers[reg]), ended);
    }
    Write(flow_.registers[reg], {ended, kVaryingForm});
  }
  b_.CreateStore(llvm::ConstantPointerNull::get(b_.getInt8PtrTy()),
                 WarpField(offsetof(Warp, again), b_.getInt8PtrTy()));
  b_.CreateStore(fuel, WarpField(offsetof(Warp, fuel), b_.getInt32Ty()));
}

// The code goes on where the lanes run in step.
void Emitter::EmitLaneByLane(uint32_t head, LaneByLane* loop) {
  const auto get = [&](llvm::AllocaInst* variable) {
    return b_.CreateLoad(variable->getAllocatedType(), variable);
  };
  const ProgramInst& branch = flow_.program.code[loop->last];
  const bool negated = (branch.guard & 1) != 0;
  const Place guard = {branch.guard & ~1u, Kind::kPred};
  llvm::BasicBlock *begin = NewBlock("lanes"), *in_step = NewBlock("in_step");
  llvm::BasicBlock *lane_begins = NewBlock("lane"), *round = NewBlock("round");
  llvm::BasicBlock *again = NewBlock("again"), *lane_ends = NewBlock("lane_ends");
  llvm::BasicBlock *over = NewBlock("over"), *give_up = NewBlock("give_up");
  loop->branch = NewBlock("branch");
  Value* many = b_.CreateICmpUGT(b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, Mask()),
                                 b_.getInt32(kFewLanes));
  b_.CreateCondBr(b_.CreateOr(many, get(loop->gave_up)), in_step, begin);

  b_.SetInsertPoint(begin);
  SpillFor(head);
  b_.CreateStore(CodeAt(head), WarpField(offsetof(Warp, again), b_.getInt8PtrTy()));
  b_.CreateStore(Mask(), loop->rest);
  Value* const fuel = LoadWarp(offsetof(Warp, fuel), b_.getInt32Ty());
  b_.CreateStore(fuel, loop->least_fuel);
  b_.CreateBr(lane_begins);

  b_.SetInsertPoint(lane_begins);
  Value* number = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, get(loop->rest), b_.getFalse());
  Value* lane = b_.CreateAnd(b_.CreateZExt(number, b_.getInt64Ty()), b_.getInt64(31));
  FillLane(*loop, lane);
  b_.CreateStore(fuel, loop->fuel);
  b_.CreateBr(round);

  b_.SetInsertPoint(round);
  lane_by_lane_ = loop;
  std::set<uint32_t> checked;
  for (uint32_t n = head; n < loop->last; ++n) {
    Access access;
    const bool loads = AccessOf(RowOf(flow_.program.code[n].key), &access);
    loads ? LoadForLane(n, loop->last, give_up, &checked) : EmitRow(n);
  }
  Value* taken = negated ? b_.CreateNot(ReadScalar(guard)) : ReadScalar(guard);
  lane_by_lane_ = nullptr;
  b_.CreateStore(b_.CreateSub(get(loop->fuel), b_.getInt32(1)), loop->fuel);
  b_.CreateCondBr(taken, again, lane_ends);
  b_.SetInsertPoint(again);
  Expect(b_.CreateICmpSGT(get(loop->fuel), b_.getInt32(0)), round, give_up);

  b_.SetInsertPoint(lane_ends);
  EndLane(*loop, lane);
  b_.CreateCondBr(b_.CreateIsNull(get(loop->rest)), over, lane_begins);

  b_.SetInsertPoint(over);
  Regroup(*loop, get(loop->least_fuel));
  b_.CreateBr(blocks_[loop->last + 1]);

  // The others are at the head, as if they had taken the branch, with all the fuel there was: they
  // get on in step before they yield, or a lane could wait forever for one behind it.
  b_.SetInsertPoint(give_up);
  Regroup(*loop, fuel);
  b_.CreateStore(b_.getTrue(), loop->gave_up);
  Value* back = negated ? b_.CreateNot(get(loop->rest)) : get(loop->rest);
  Write(guard, {b_.CreateBitCast(back, VectorOf(b_.getInt1Ty())), kVaryingForm});
  b_.CreateBr(loop->branch);
  b_.SetInsertPoint(in_step);
}

}  // namespace softgpu::jit
