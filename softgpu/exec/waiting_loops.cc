#include "softgpu/exec/waiting_loops.h"

#include <algorithm>

namespace softgpu::exec {
namespace {

using ptx::AtomOp;
using ptx::Instruction;
using ptx::Op;
using ptx::Operand;

// A longer loop does more than to wait.
constexpr uint32_t kInstructionsMax = 64;

// An atomic with this operand changes nothing: programs read by such atomics.
bool ChangesNothing(const Instruction& i, const Operand& operand) {
  const AtomOp op = static_cast<AtomOp>(i.mode);
  const bool zero = operand.kind == Operand::Kind::kImmediate && operand.bits == 0;
  return zero && (op == AtomOp::kAdd || op == AtomOp::kOr || op == AtomOp::kXor);
}

class Loop {
 public:
  // `targets`: the instructions that something jumps to.
  Loop(const ptx::Function& function, const std::vector<bool>& targets, uint32_t first,
       uint32_t last)
      : f_(function), targets_(targets), first_(first), last_(last) {}

  bool OnlyWaits() {
    bool reads_memory = false;
    for (uint32_t n = first_; n <= last_; ++n) {
      const Instruction& i = f_.instructions[n];
      if (!MayStand(i)) return false;
      reads_memory = reads_memory || i.op == Op::kAtom || i.op == Op::kMbarrierTestWait ||
                     i.op == Op::kMbarrierTryWait ||
                     (i.op == Op::kLd && i.space != ptx::Space::kParam);
    }
    return reads_memory && !CarriesRegisters();
  }

 private:
  static bool IsPlain(Op op) {
    return (op <= Op::kIsspacep && op != Op::kAddc && op != Op::kSubc && op != Op::kMadc) ||
           op == Op::kLd || op == Op::kLdu || op == Op::kMembar || op == Op::kFence ||
           op == Op::kVote || op == Op::kActivemask || op == Op::kNanosleep ||
           op == Op::kMbarrierTestWait || op == Op::kMbarrierTryWait;
  }

  bool MayStand(const Instruction& i) const {
    if (IsPlain(i.op)) return !i.Has(ptx::kCarryOut);
    const Operand* const operands = f_.Operands(i);
    if (i.op == Op::kAtom) {
      const AtomOp op = static_cast<AtomOp>(i.mode);
      return op == AtomOp::kCas || op == AtomOp::kExch || ChangesNothing(i, operands[2]);
    }
    return i.op == Op::kBra || i.op == Op::kRet || i.op == Op::kExit || i.op == Op::kTrap;
  }

  // f(register) for those of an operand.
  template <class F>
  void ForRegisters(const Operand& operand, const F& f) const {
    if (operand.kind == Operand::Kind::kRegister) f(operand.index);
    if (operand.kind == Operand::Kind::kVector) {
      for (uint32_t k = 0; k < operand.count; ++k) ForRegisters(f_.operands[operand.index + k], f);
    }
    if (operand.second != ptx::kNoIndex) f(operand.second);
  }

  static bool HasResult(const Instruction& i) {
    return i.op != Op::kBra && i.op != Op::kRet && i.op != Op::kExit && i.op != Op::kTrap &&
           i.op != Op::kMembar && i.op != Op::kFence && i.op != Op::kNanosleep;
  }

  // Whether some register is read before the loop has written it for certain, and is written by it:
  // a counter, or what the round before has read.
  bool CarriesRegisters() {
    std::vector<bool> early(f_.registers.size()), changed(f_.registers.size());
    std::vector<bool> written(f_.registers.size());  // whatever way was taken
    std::vector<bool> here = written;                // since the last place that jumps lead to
    uint32_t certain_from = first_;                  // what stands before may be jumped over
    for (uint32_t n = first_; n <= last_; ++n) {
      const Instruction& i = f_.instructions[n];
      const Operand* const operands = f_.Operands(i);
      if (targets_[n]) here = written;
      const auto read = [&](uint32_t reg) { early[reg] = early[reg] || !here[reg]; };
      if (i.guard != ptx::kNoIndex) read(i.guard);
      for (uint32_t k = HasResult(i) ? 1 : 0; k < i.count; ++k) ForRegisters(operands[k], read);
      const bool always = i.guard == ptx::kNoIndex;
      const auto write = [&](uint32_t reg) {
        changed[reg] = true;
        here[reg] = here[reg] || always;
        written[reg] = written[reg] || (always && n >= certain_from);
      };
      if (HasResult(i) && i.count != 0) ForRegisters(operands[0], write);
      if (i.op != Op::kBra) continue;
      const uint32_t target = operands[0].index;
      if (target > n && target <= last_) certain_from = std::max(certain_from, target);
    }
    for (size_t reg = 0; reg < early.size(); ++reg) {
      if (early[reg] && changed[reg]) return true;
    }
    return false;
  }

  const ptx::Function& f_;
  const std::vector<bool>& targets_;
  const uint32_t first_, last_;
};

std::vector<bool> Targets(const ptx::Function& function) {
  std::vector<bool> targets(function.instructions.size() + 1);
  for (const Instruction& i : function.instructions) {
    if (i.op == Op::kBra) targets[function.Operands(i)[0].index] = true;
  }
  for (const std::vector<uint32_t>& table : function.branch_tables) {
    for (uint32_t target : table) targets[target] = true;
  }
  return targets;
}

}  // namespace

std::vector<bool> WaitingLoops(const ptx::Function& function) {
  std::vector<bool> waits(function.instructions.size());
  const std::vector<bool> targets = Targets(function);
  for (uint32_t n = 0; n < function.instructions.size(); ++n) {
    const Instruction& i = function.instructions[n];
    if (i.op != Op::kBra) continue;
    const uint32_t target = function.Operands(i)[0].index;
    if (target > n || n - target >= kInstructionsMax) continue;
    waits[n] = Loop(function, targets, target, n).OnlyWaits();
  }
  return waits;
}

}  // namespace softgpu::exec
