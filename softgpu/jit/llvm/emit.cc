#include "softgpu/jit/llvm/emit.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>

#include <cstddef>

#include "softgpu/exec/code.h"

namespace softgpu::jit {

using exec::Inst;
using exec::kLanes;
using exec::Warp;

Emitter::Emitter(const Flow& flow, llvm::Module* module, Abilities host)
    : flow_(flow), module_(module), host_(host), context_(module->getContext()), b_(context_) {}

llvm::Type* Emitter::ScalarType(Kind kind) {
  return kind == Kind::kPred ? b_.getInt1Ty() : b_.getIntNTy(KindBytes(kind) * 8);
}

llvm::Type* Emitter::VectorOf(llvm::Type* scalar) {
  return llvm::FixedVectorType::get(scalar, kLanes);
}

llvm::Type* Emitter::TypeOf(Kind kind, Form form) {
  return form.Varies() ? VectorOf(ScalarType(kind)) : ScalarType(kind);
}

llvm::BasicBlock* Emitter::NewBlock(const char* name) {
  return llvm::BasicBlock::Create(context_, name, function_);
}

void Emitter::Expect(Value* condition, llvm::BasicBlock* usual, llvm::BasicBlock* unusual) {
  b_.CreateCondBr(condition, usual, unusual,
                  llvm::MDBuilder(context_).createBranchWeights(1 << 20, 1));
}

Emitter::Value* Emitter::Pointer(Value* base, uint64_t offset, llvm::Type* type) {
  Value* at = offset == 0 ? base : b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), base, offset);
  return b_.CreateBitCast(at, type->getPointerTo());
}

Emitter::Value* Emitter::PointerAt(Value* address, llvm::Type* type) {
  return b_.CreateIntToPtr(address, type->getPointerTo());
}

Emitter::Value* Emitter::WarpField(size_t offset, llvm::Type* type) {
  return Pointer(warp_, offset, type);
}

Emitter::Value* Emitter::LoadWarp(size_t offset, llvm::Type* type) {
  return b_.CreateLoad(type, WarpField(offset, type));
}

Emitter::Value* Emitter::Bits(Value* lanes) { return b_.CreateBitCast(lanes, b_.getInt32Ty()); }

Emitter::Value* Emitter::FirstLane() {
  Value* first = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, Mask(), b_.getFalse());
  return b_.CreateAnd(b_.CreateZExt(first, b_.getInt64Ty()), b_.getInt64(31));
}

Emitter::Value* Emitter::CodeAt(uint32_t n) {
  return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), code_, uint64_t{n} * sizeof(Inst));
}

Emitter::Value* Emitter::Ramp(llvm::Type* scalar, int64_t stride) {
  std::vector<llvm::Constant*> steps;
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    steps.push_back(llvm::ConstantInt::get(scalar, static_cast<uint64_t>(lane * stride)));
  return llvm::ConstantVector::get(steps);
}

Emitter::Value* Emitter::MakeVector(Result result, Kind kind) {
  if (result.form.Varies()) return result.value;
  Value* splat = b_.CreateVectorSplat(kLanes, result.value);
  if (result.form.of == Form::Of::kUniform) return splat;
  return b_.CreateAdd(splat, Ramp(ScalarType(kind), result.form.stride));
}

Emitter::Result Emitter::Read(Place place) {
  if (flow_.IsConstant(place.offset)) {
    const ProgramConstant* constant = flow_.ConstantAt(place.offset);
    if (constant != nullptr && constant->known) {
      if (place.kind == Kind::kPred) return {b_.getInt1(constant->bits != 0), kUniformForm};
      return {llvm::ConstantInt::get(ScalarType(place.kind), constant->bits), kUniformForm};
    }
    return {unknown_constants_.at(place.offset), kUniformForm};
  }
  const uint32_t reg = flow_.Find(place);
  if (reg == Flow::kNone)  // "no operand"
    return {llvm::Constant::getNullValue(ScalarType(place.kind)), kUniformForm};
  if (lane_by_lane_ != nullptr && lane_by_lane_->registers.count(reg) != 0) {
    llvm::AllocaInst* now = lane_by_lane_->registers.at(reg).now;
    return {b_.CreateLoad(now->getAllocatedType(), now), kUniformForm};
  }
  const Form form = flow_.forms[reg];
  return {b_.CreateLoad(TypeOf(place.kind, form), variables_[reg]), form};
}

void Emitter::Write(Place place, Result result, Value* guard) {
  const uint32_t reg = flow_.Find(place);
  if (reg == Flow::kNone) return;
  if (lane_by_lane_ != nullptr) {
    b_.CreateStore(result.value, lane_by_lane_->registers.at(reg).now);
    return;
  }
  Value* value = flow_.forms[reg].Varies() ? MakeVector(result, place.kind) : result.value;
  if (guard != nullptr) {
    Value* before = b_.CreateLoad(TypeOf(place.kind, flow_.forms[reg]), variables_[reg]);
    value = b_.CreateSelect(guard, value, before);
  }
  b_.CreateStore(value, variables_[reg]);
  for (const auto& [n, settled] : settled_) {
    if (settled.registers.Has(reg)) b_.CreateStore(b_.getFalse(), settled.done);
  }
}

// Natively, or by its handler.
std::vector<uint32_t> Emitter::WrittenBy(uint32_t n) const {
  std::vector<uint32_t> written;
  const ProgramInst& i = flow_.program.code[n];
  for (const Place& result : flow_.operands[n].results) {
    if (flow_.Find(result) != Flow::kNone) written.push_back(flow_.Find(result));
  }
  if (flow_.operands[n].native) return written;
  for (uint32_t offset : {i.d, i.b, i.c, i.e}) {
    for (uint32_t reg : flow_.At(offset)) written.push_back(reg);
  }
  return written;
}

Emitter::Value* Emitter::GuardOf(const ProgramInst& i) {
  if (i.guarded == 0) return nullptr;
  Value* guard = ReadScalar({i.guard & ~1u, Kind::kPred});
  return (i.guard & 1) != 0 ? b_.CreateNot(guard) : guard;
}

// Writes the active lanes of a register into the frame.
void Emitter::Spill(uint32_t reg) {
  const Place place = flow_.registers[reg];
  Value* value = ReadVector(place);
  if (place.kind == Kind::kPred) {
    Value* at = Pointer(regs_, place.offset, b_.getInt32Ty());
    Value* kept = b_.CreateAnd(b_.CreateLoad(b_.getInt32Ty(), at), b_.CreateNot(Mask()));
    b_.CreateStore(b_.CreateOr(kept, b_.CreateAnd(Bits(value), Mask())), at);
    return;
  }
  llvm::Type* type = value->getType();
  Value* at = Pointer(regs_, place.offset, type);
  if (place.kind == Kind::k16) {
    Value* before = b_.CreateAlignedLoad(type, at, llvm::Align(64));
    b_.CreateAlignedStore(b_.CreateSelect(MaskVector(), value, before), at, llvm::Align(64));
  } else {
    b_.CreateMaskedStore(value, at, llvm::Align(64), MaskVector());
  }
}

// Reads a register from the frame. Its form is as expected: CheckForms().
void Emitter::Fill(uint32_t reg) {
  const Place place = flow_.registers[reg];
  const Form form = flow_.forms[reg];
  if (place.kind == Kind::kPred) {
    Value* bits = b_.CreateLoad(b_.getInt32Ty(), Pointer(regs_, place.offset, b_.getInt32Ty()));
    Value* value = form.Varies() ? b_.CreateBitCast(bits, VectorOf(b_.getInt1Ty()))
                                 : b_.CreateICmpNE(b_.CreateAnd(bits, Mask()), b_.getInt32(0));
    b_.CreateStore(value, variables_[reg]);
    return;
  }
  llvm::Type* scalar = ScalarType(place.kind);
  if (form.Varies()) {
    llvm::Type* type = VectorOf(scalar);
    b_.CreateStore(b_.CreateAlignedLoad(type, Pointer(regs_, place.offset, type), llvm::Align(64)),
                   variables_[reg]);
    return;
  }
  Value* at = b_.CreateInBoundsGEP(scalar, Pointer(regs_, place.offset, scalar), FirstLane());
  Value* value = b_.CreateLoad(scalar, at);
  if (form.of == Form::Of::kLinear) {
    Value* lane = b_.CreateZExtOrTrunc(FirstLane(), scalar);
    value = b_.CreateSub(value,
                         b_.CreateMul(lane, llvm::ConstantInt::get(scalar, uint64_t(form.stride))));
  }
  b_.CreateStore(value, variables_[reg]);
}

// Refuses unless the frame's active lanes agree with the forms of `registers`.
void Emitter::CheckForms(const std::vector<uint32_t>& registers, Value* trusted) {
  llvm::BasicBlock* check = NewBlock("check");
  llvm::BasicBlock* agreed = NewBlock("agreed");
  b_.CreateCondBr(trusted, agreed, check);
  b_.SetInsertPoint(check);
  Value* differ = llvm::Constant::getNullValue(VectorOf(b_.getInt1Ty()));
  Value* mixed = b_.getFalse();
  for (uint32_t reg : registers) {
    const Place place = flow_.registers[reg];
    if (place.kind == Kind::kPred) {
      Value* bits = b_.CreateLoad(b_.getInt32Ty(), Pointer(regs_, place.offset, b_.getInt32Ty()));
      Value* set = b_.CreateAnd(bits, Mask());
      mixed = b_.CreateOr(
          mixed, b_.CreateAnd(b_.CreateICmpNE(set, b_.getInt32(0)), b_.CreateICmpNE(set, Mask())));
      continue;
    }
    llvm::Type* type = VectorOf(ScalarType(place.kind));
    Value* now = b_.CreateAlignedLoad(type, Pointer(regs_, place.offset, type), llvm::Align(64));
    differ = b_.CreateOr(differ, b_.CreateICmpNE(now, ReadVector(place)));
  }
  Value* wrong = b_.CreateICmpNE(b_.CreateAnd(Bits(differ), Mask()), b_.getInt32(0));
  b_.CreateCondBr(b_.CreateOr(wrong, mixed), refused_, agreed);
  b_.SetInsertPoint(agreed);
}

void Emitter::EmitEntry(uint32_t n) {
  std::vector<uint32_t> expected;
  for (uint32_t reg = 0; reg < flow_.registers.size(); ++reg) {
    if (!flow_.live[n].Has(reg)) continue;
    Fill(reg);
    if (!flow_.forms[reg].Varies()) expected.push_back(reg);
  }
  if (n != 0 && !expected.empty()) {
    Value* left = LoadWarp(offsetof(Warp, left), b_.getInt32Ty());
    Value* lanes = LoadWarp(offsetof(Warp, left_mask), b_.getInt32Ty());
    Value* trusted =
        b_.CreateAnd(b_.CreateICmpEQ(left, b_.getInt32(n)), b_.CreateICmpEQ(lanes, Mask()));
    CheckForms(expected, trusted);
  }
  b_.CreateStore(b_.getInt32(0), WarpField(offsetof(Warp, left), b_.getInt32Ty()));
  b_.CreateBr(blocks_[n]);
}

// Runs the handler of instruction `n` as the interpreter would.
Emitter::Value* Emitter::RunHandler(uint32_t n) {
  b_.CreateStore(b_.getInt64(0), WarpField(offsetof(Warp, access_form), b_.getInt64Ty()));
  llvm::Type* pointer = handler_type_->getPointerTo();
  Value* at = b_.CreateConstInBoundsGEP1_64(pointer, handlers_, n);
  return b_.CreateCall(handler_type_, b_.CreateLoad(pointer, at), {CodeAt(n), warp_});
}

// Writes what instruction `n` and those behind it need into the frame.
void Emitter::SpillFor(uint32_t n) {
  for (uint32_t reg = 0; reg < flow_.registers.size(); ++reg) {
    if (flow_.live[n].Has(reg) && flow_.dirty[n].Has(reg)) Spill(reg);
  }
}

// Back to the interpreter, which goes on with instruction `n`.
void Emitter::Leave(uint32_t n) {
  SpillFor(n);
  LeaveSpilt(n);
}

void Emitter::LeaveSpilt(uint32_t n) {
  const bool wild = flow_.program.code[n].step == Step::kLeaveWild;
  b_.CreateStore(b_.getInt32(wild ? 0 : n + 1), WarpField(offsetof(Warp, left), b_.getInt32Ty()));
  b_.CreateStore(Mask(), WarpField(offsetof(Warp, left_mask), b_.getInt32Ty()));
  b_.CreateRet(RunHandler(n));
}

// Whether the handler reads what lies at `offset`, which is one of its operands.
bool Emitter::NeedsInFrame(uint32_t n, uint32_t offset) const {
  const ProgramInst& i = flow_.program.code[n];
  if (i.guarded != 0 || i.step != Step::kRow || offset != i.d) return true;
  if (!flow_.operands[n].native)
    return offset == i.a || offset == i.b || offset == i.c || offset == i.e;
  for (const Place& source : flow_.operands[n].sources) {
    if (source.offset == offset) return true;
  }
  return false;
}

// An instruction that the compiler does not know, in the middle of those that it knows.
void Emitter::CallHandler(uint32_t n) {
  const ProgramInst& i = flow_.program.code[n];
  for (uint32_t offset : {i.d, i.a, i.b, i.c, i.e, i.guard & ~1u}) {
    if (offset == 0) continue;
    for (uint32_t reg : flow_.At(offset)) {
      if (NeedsInFrame(n, offset) && flow_.dirty[n].Has(reg)) Spill(reg);
    }
  }
  Value* next = RunHandler(n);
  llvm::BasicBlock* went_on = NewBlock("on");
  llvm::BasicBlock* stopped = NewBlock("stopped");
  Expect(b_.CreateICmpEQ(next, CodeAt(n + 1)), went_on, stopped);
  b_.SetInsertPoint(stopped);
  b_.CreateRet(next);
  b_.SetInsertPoint(went_on);
  const bool wide = i.step == Step::kCallWide || flow_.operands[n].native;
  for (uint32_t offset : {i.d, i.b, i.c, i.e}) {
    if (offset == 0 || (offset != i.d && !wide)) continue;
    if (flow_.IsConstant(offset)) continue;
    for (uint32_t reg : flow_.At(offset)) Fill(reg);
  }
}

void Emitter::EmitInstruction(uint32_t n) {
  switch (flow_.program.code[n].step) {
    case Step::kBranch:
    case Step::kBranchIf:
      return EmitBranch(n);
    case Step::kJoin:
      return EmitJoin(n);
    case Step::kShuffle:
      return EmitShuffle(n);
    case Step::kRow: {
      if (!flow_.operands[n].native) return CallHandler(n);
      Access access;
      return AccessOf(RowOf(flow_.program.code[n].key), &access) ? EmitAccess(n) : EmitRow(n);
    }
    case Step::kParameter:
      return EmitParameter(n);
    case Step::kBarrier:
      return EmitBarrier(n);
    case Step::kExit:
      return EmitExit(n);
    case Step::kSpecial:
      return flow_.operands[n].native ? EmitSpecial(n) : CallHandler(n);
    case Step::kCall:
    case Step::kCallWide:
      return CallHandler(n);
    default:
      return Leave(n);
  }
}

// The parts that every way through the function shares.
void Emitter::Begin() {
  llvm::Type* byte = b_.getInt8PtrTy();
  llvm::Type* word = b_.getInt32Ty();
  handler_type_ = llvm::FunctionType::get(byte, {byte, byte}, false);
  llvm::Type* handlers = handler_type_->getPointerTo()->getPointerTo();
  function_ = llvm::Function::Create(
      llvm::FunctionType::get(
          byte, {byte, byte, b_.getInt64Ty(), handlers, byte->getPointerTo(), byte}, false),
      llvm::Function::ExternalLinkage, kEntryName, module_);
  code_ = function_->getArg(0);
  handlers_ = function_->getArg(3);
  b_.SetInsertPoint(NewBlock("begin"));
  for (const Place& place : flow_.registers)
    variables_.push_back(b_.CreateAlloca(TypeOf(place.kind, flow_.forms[variables_.size()])));
  lanes_ = b_.CreateAlloca(word);
  nowhere_ = b_.CreateAlloca(llvm::FixedVectorType::get(b_.getInt64Ty(), 4));
  FindAdjacent();
  FindSettled();
  FindLaneByLane();
  BeginWarp();
  regs_ = LoadWarp(offsetof(Warp, regs), byte);
  b_.CreateStore(LoadWarp(offsetof(Warp, mask), word), lanes_);
  llvm::BasicBlock* alive = NewBlock("alive");
  finished_->addIncoming(llvm::ConstantPointerNull::get(b_.getInt8PtrTy()), b_.GetInsertBlock());
  Expect(b_.CreateICmpNE(Mask(), b_.getInt32(0)), alive, next_warp_);
  b_.SetInsertPoint(alive);
  shared_ = LoadWarp(offsetof(Warp, shared), b_.getInt64Ty());
  shared_bytes_ = LoadWarp(offsetof(Warp, shared_bytes), b_.getInt64Ty());
  parameters_ = LoadWarp(offsetof(Warp, parameters), byte);
  for (const ProgramConstant& constant : flow_.program.constants) {
    if (constant.known) continue;
    llvm::Type* type = b_.getIntNTy(constant.bytes * 8);
    unknown_constants_[constant.offset] =
        b_.CreateLoad(type, Pointer(regs_, constant.offset, type));
  }
}

void Emitter::Run() {
  Begin();
  const uint32_t count = static_cast<uint32_t>(flow_.program.code.size());
  blocks_.resize(count + 1);
  for (uint32_t n = 0; n < count; ++n) {
    if (flow_.leaders[n]) blocks_[n] = NewBlock("at");
  }
  refused_ = NewBlock("refused");
  llvm::SwitchInst* entries = b_.CreateSwitch(function_->getArg(2), refused_);
  b_.SetInsertPoint(refused_);
  b_.CreateRet(b_.CreateIntToPtr(b_.getInt64(exec::CompiledFunction::kRefused), b_.getInt8PtrTy()));
  for (uint32_t n = 0; n < count; ++n) {
    if (!flow_.entries[n]) continue;
    llvm::BasicBlock* entry = NewBlock("entry");
    entries->addCase(b_.getInt64(n), entry);
    b_.SetInsertPoint(entry);
    EmitEntry(n);
  }
  b_.SetInsertPoint(blocks_[0]);
  for (uint32_t n = 0; n < count; ++n) {
    const bool open = b_.GetInsertBlock()->getTerminator() == nullptr;
    if (blocks_[n] != nullptr) {
      if (open && b_.GetInsertBlock() != blocks_[n]) b_.CreateBr(blocks_[n]);
      b_.SetInsertPoint(blocks_[n]);
    } else if (!open) {
      continue;  // nobody comes here
    }
    BeginLaneByLane(n);
    EmitInstruction(n);
  }
  if (b_.GetInsertBlock()->getTerminator() == nullptr) b_.CreateUnreachable();
  EndWarps();
}

}  // namespace softgpu::jit
