#include "softgpu/ptx/cfg.h"

#include <algorithm>

namespace softgpu::ptx {
namespace {

bool EndsBlock(const Instruction& i) {
  return i.op == Op::kBra || i.op == Op::kBrx || i.op == Op::kRet || i.op == Op::kExit ||
         i.op == Op::kTrap;
}

bool FallsThrough(const Instruction& i) {
  if (i.guard != kNoIndex) return true;
  return !EndsBlock(i);
}

class Builder {
 public:
  explicit Builder(Function* function) : function_(*function) {}

  void Run() {
    CutBlocks();
    LinkBlocks();
    FindPostDominators();
    MarkReconvergence();
  }

 private:
  // Instruction numbers that `i` may jump to.
  std::vector<uint32_t> Targets(const Instruction& i) const {
    const Operand* operands = function_.Operands(i);
    if (i.op == Op::kBra) return {operands[0].index};
    if (i.op == Op::kBrx && operands[1].kind == Operand::Kind::kTable) {
      return function_.branch_tables[operands[1].index];
    }
    return {};
  }

  void CutBlocks() {
    const uint32_t count = static_cast<uint32_t>(function_.instructions.size());
    std::vector<bool> leader(count + 1, false);
    if (count > 0) leader[0] = true;
    for (uint32_t n = 0; n < count; ++n) {
      const Instruction& i = function_.instructions[n];
      for (uint32_t target : Targets(i)) leader[target] = true;
      if (EndsBlock(i)) leader[n + 1] = true;
    }
    block_of_.resize(count + 1);
    for (uint32_t n = 0; n < count; ++n) {
      if (leader[n]) function_.blocks.push_back(Block{n, n, {}, kNoIndex});
      block_of_[n] = static_cast<uint32_t>(function_.blocks.size()) - 1;
      function_.blocks.back().end = n + 1;
    }
    exit_ = static_cast<uint32_t>(function_.blocks.size());
    block_of_[count] = exit_;
  }

  void LinkBlocks() {
    predecessors_.resize(exit_ + 1);
    for (uint32_t b = 0; b < exit_; ++b) {
      Block& block = function_.blocks[b];
      const Instruction& last = function_.instructions[block.end - 1];
      for (uint32_t target : Targets(last)) block.successors.push_back(block_of_[target]);
      if (FallsThrough(last)) block.successors.push_back(block_of_[block.end]);
      if (block.successors.empty()) block.successors.push_back(exit_);
      std::sort(block.successors.begin(), block.successors.end());
      block.successors.erase(std::unique(block.successors.begin(), block.successors.end()),
                             block.successors.end());
      for (uint32_t successor : block.successors) predecessors_[successor].push_back(b);
    }
  }

  // Orders blocks backwards from the exit, without recursion (text is untrusted).
  void NumberFromExit() {
    number_.assign(exit_ + 1, kNoIndex);
    std::vector<std::pair<uint32_t, size_t>> stack;
    std::vector<bool> seen(exit_ + 1, false);
    stack.emplace_back(exit_, 0);
    seen[exit_] = true;
    while (!stack.empty()) {
      const uint32_t block = stack.back().first;
      if (stack.back().second < predecessors_[block].size()) {
        const uint32_t next = predecessors_[block][stack.back().second++];
        if (!seen[next]) {
          seen[next] = true;
          stack.emplace_back(next, 0);
        }
      } else {
        number_[block] = static_cast<uint32_t>(order_.size());
        order_.push_back(block);
        stack.pop_back();
      }
    }
  }

  uint32_t Intersect(uint32_t a, uint32_t b) const {
    while (a != b) {
      while (number_[a] < number_[b]) a = dominator_[a];
      while (number_[b] < number_[a]) b = dominator_[b];
    }
    return a;
  }

  // Cooper, Harvey and Kennedy's algorithm on the reversed graph. Blocks that never reach the exit
  // (an endless loop) have no post-dominator: their lanes meet by chance only, which is correct.
  void FindPostDominators() {
    NumberFromExit();
    dominator_.assign(exit_ + 1, kNoIndex);
    dominator_[exit_] = exit_;
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t n = order_.size(); n-- > 0;) {
        const uint32_t block = order_[n];
        if (block == exit_) continue;
        uint32_t chosen = kNoIndex;
        for (uint32_t successor : function_.blocks[block].successors) {
          if (dominator_[successor] == kNoIndex) continue;
          chosen = chosen == kNoIndex ? successor : Intersect(successor, chosen);
        }
        if (chosen != dominator_[block]) {
          dominator_[block] = chosen;
          changed = true;
        }
      }
    }
    for (uint32_t b = 0; b < exit_; ++b) {
      if (dominator_[b] != exit_) function_.blocks[b].post_dominator = dominator_[b];
    }
  }

  void MarkReconvergence() {
    function_.reconverges.assign(function_.instructions.size() + 1, false);
    for (const Block& block : function_.blocks) {
      const Instruction& last = function_.instructions[block.end - 1];
      const bool diverges =
          (last.op == Op::kBra && last.guard != kNoIndex && !last.Has(kUni)) || last.op == Op::kBrx;
      if (diverges && block.post_dominator != kNoIndex) {
        function_.reconverges[function_.blocks[block.post_dominator].begin] = true;
      }
    }
    for (size_t n = 0; n + 1 < function_.instructions.size(); ++n) {
      if (function_.instructions[n].op == Op::kCall) function_.reconverges[n + 1] = true;
    }
  }

  Function& function_;
  uint32_t exit_ = 0;
  std::vector<uint32_t> block_of_, number_, order_, dominator_;
  std::vector<std::vector<uint32_t>> predecessors_;
};

}  // namespace

void BuildControlFlow(Function* function) { Builder(function).Run(); }

}  // namespace softgpu::ptx
