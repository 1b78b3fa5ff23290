// Branches, calls, barriers and warp-wide instructions.
#include "base/find.h"
#include "softgpu/exec/check.h"
#include "softgpu/exec/translate.h"

namespace softgpu::exec {

using ptx::Instruction;
using ptx::Operand;

namespace {

// Where a warp's instruction has the mask of its threads.
uint32_t MaskOperand(Op op) {
  switch (op) {
    case Op::kShfl:
      return 4;
    case Op::kElect:
      return 1;
    case Op::kBarWarp:
      return 0;
    default:
      return 2;
  }
}

}  // namespace

void FunctionTranslator::Jump(const Instruction& i) {
  const Operand* operands = Operands(i);
  if (i.op == Op::kBra) {
    const bool conditional = i.guard != ptx::kNoIndex;
    guarded_ = false;
    const uint32_t from = static_cast<uint32_t>(&i - f_.instructions.data());
    jumps_.push_back({static_cast<uint32_t>(out_->code.size()), from, operands[0].index});
    Emit(conditional ? BranchIf : Branch).guard = guard_;
    return;
  }
  BeginControl(i);
  switch (i.op) {
    case Op::kBrx: {
      const uint32_t index = Source(operands[0], 4);
      Emit(operands[1].kind == Operand::Kind::kTable ? BranchTable : Unimplemented, 0, index).imm =
          operands[1].index;
      break;
    }
    case Op::kRet:
      Emit(Return);
      break;
    case Op::kExit:
      Emit(Exit);
      break;
    case Op::kNanosleep:
      Emit(Yield);
      break;
    default:
      Emit(Trap);
      break;
  }
  EndControl(i);
}

void FunctionTranslator::CallFunction(const Instruction& i) {
  const Operand* operands = Operands(i);
  const ptx::CallSite& site = f_.calls[operands[1].bits];
  CallPlan plan;
  for (const auto& [symbols, pieces] :
       {std::pair{&site.arguments, &plan.arguments}, std::pair{&site.results, &plan.results}}) {
    for (uint32_t s : *symbols) {
      pieces->push_back({f_.symbols[s].offset, static_cast<uint32_t>(f_.symbols[s].bytes)});
    }
  }
  uint32_t target = 0;
  if (operands[0].kind == Operand::Kind::kRegister) {
    plan.kind = CallPlan::Kind::kIndirect;
    target = offset_of_[operands[0].index];
    kernel_->calls = true;
  } else {
    const ptx::Function* callee = kernel_->kernel->module().functions[operands[0].index].get();
    if (FunctionCode* const code = base::FindOr(kernel_->by_source, callee, nullptr)) {
      plan.target = code;
      kernel_->calls = true;
    } else {
      plan.kind = CallPlan::Kind::kBuiltin;
      plan.builtin = ptx::FindBuiltin(callee->name);
    }
  }
  BeginControl(i);
  Emit(Call, 0, target).imm = out_->calls.size();
  out_->calls.push_back(std::move(plan));
  EndControl(i);
}

// bar.sync a{, b}   bar.arrive a, b   bar.red.op d, a{, b}, p
void FunctionTranslator::BlockBarrier(const Instruction& i) {
  const Operand* operands = Operands(i);
  const ptx::BarMode mode = static_cast<ptx::BarMode>(i.mode);
  const bool reduces = mode == ptx::BarMode::kRed;
  BeginControl(i);
  if (i.op == Op::kBarrierCluster) {
    // The cluster is this block. Who arrives always waits later, so waiting does for both.
    const uint32_t number = Constant(4, kClusterBarrier);
    if (mode == ptx::BarMode::kSync) Emit(ClusterWait, 0, number, Constant(4, 0));
    return EndControl(i);
  }
  const uint32_t first = reduces ? 1 : 0, values = i.count - (reduces ? 2 : 0);
  const uint32_t number = values > 0 ? Source(operands[first], 4) : Constant(4, 0);
  const uint32_t threads = values > 1 ? Source(operands[first + 1], 4) : Constant(4, 0);
  const bool aligned = i.op == Op::kBar && mode != ptx::BarMode::kArrive;
  if (kernel_->checked && aligned) Emit(CheckBlockBarrier);
  if (!reduces) {
    Emit(mode == ptx::BarMode::kSync ? BarSync : BarArrive, 0, number, threads);
  } else {
    const Operand& p = operands[i.count - 1];
    const uint64_t all = p.bits != 0 ? kFullMask : 0;
    const uint32_t predicate =
        p.kind == Operand::Kind::kRegister ? offset_of_[p.index] : Constant(4, all);
    Emit(BarRed, 0, number, threads, predicate).imm = p.negated;
    Emit(BarRedResult, Dest(operands[0]), number).imm = static_cast<uint64_t>(i.combine);
  }
  EndControl(i);
}

void FunctionTranslator::WarpOperation(const Instruction& i) {
  const Operand* operands = Operands(i);
  BeginControl(i);
  const uint32_t last = MaskOperand(i.op);
  const uint32_t mask = i.count > last ? Source(operands[last], 4) : Constant(4, kFullMask);
  const bool checks = kernel_->checked && (i.Has(ptx::kSync) || i.op == Op::kBarWarp);
  if (checks) Emit(CheckWarpMask, 0, 0, mask);
  const uint32_t d = i.op == Op::kBarWarp ? 0 : Dest(operands[0]);
  const uint32_t second = operands[0].second != ptx::kNoIndex ? offset_of_[operands[0].second] : 0;
  switch (i.op) {
    case Op::kShfl: {
      const uint32_t a = Source(operands[1], 4), b = Source(operands[2], 4);
      const uint32_t c = Source(operands[3], 4);
      Inst& inst = Emit(Shfl, d, a, b, c);
      inst.e = mask;
      inst.guard = second;
      inst.imm = i.mode;
      break;
    }
    case Op::kVote: {
      const Operand& p = operands[1];
      const uint64_t all = p.bits != 0 ? kFullMask : 0;
      const uint32_t a =
          p.kind == Operand::Kind::kRegister ? offset_of_[p.index] : Constant(4, all);
      Emit(Vote, d, a, mask).imm = i.mode | (p.negated ? 256 : 0);
      break;
    }
    case Op::kMatch: {
      const uint32_t a = Source(operands[1], ptx::Bytes(i.type));
      Inst& inst = Emit(i.type == Type::kB64 ? Match64 : Match32, d, a, mask);
      inst.imm = static_cast<ptx::VoteMode>(i.mode) == ptx::VoteMode::kAll;
      inst.e = second;
      break;
    }
    case Op::kRedux: {
      const uint32_t a = Source(operands[1], 4);
      Emit(Redux, d, a, mask).imm =
          i.mode | (i.type == Type::kS32 ? 256 : 0) | (i.type == Type::kF32 ? 512 : 0) |
          (i.Has(ptx::kAbsolute) ? 1024 : 0) | (i.Has(ptx::kNanResult) ? 2048 : 0);
      break;
    }
    case Op::kElect:
      Emit(Elect, d, 0, mask).e = second;
      break;
    default:
      Emit(WarpBarrier, 0, mask);
      break;
  }
  if (checks) Emit(NoteWarpBarrier);
  EndControl(i);
}

}  // namespace softgpu::exec
