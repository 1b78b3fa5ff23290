#include "replay/certain_blocks.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace replay {
namespace {

using softgpu::ptx::Block;
using softgpu::ptx::Function;
using softgpu::ptx::Instruction;
using softgpu::ptx::kNoIndex;
using softgpu::ptx::Op;

constexpr size_t kGuardsMax = 6;

// The control flow of a function does not show where a guarded `ret` leads, nor what a call does.
bool IsOpaque(const Instruction& i) {
  switch (i.op) {
    case Op::kCall:
    case Op::kBrx:
      return true;
    case Op::kRet:
    case Op::kExit:
    case Op::kTrap:
      return i.guard != kNoIndex;
    default:
      return false;
  }
}

class BlockSearch {
 public:
  explicit BlockSearch(const Function& function) : function_(function) {}

  std::vector<std::optional<std::vector<Guard>>> Run() {
    found_.resize(function_.blocks.size());
    done_.resize(function_.blocks.size());
    Offer(0, {});
    for (std::vector<uint32_t>& blocks : waiting_) {
      while (!blocks.empty()) {
        const uint32_t block = blocks.back();
        blocks.pop_back();
        if (done_[block]) continue;
        done_[block] = true;
        GoOn(function_.blocks[block], *found_[block]);
      }
    }
    return std::move(found_);
  }

 private:
  // Blocks are finished by ascending numbers of guards, so the first list is a shortest one.
  void Offer(uint32_t block, const std::vector<Guard>& guards) {
    if (block >= found_.size() || guards.size() > kGuardsMax) return;
    if (found_[block].has_value() && found_[block]->size() <= guards.size()) return;
    found_[block] = guards;
    waiting_[guards.size()].push_back(block);
  }

  void GoOn(const Block& block, const std::vector<Guard>& guards) {
    if (block.post_dominator != kNoIndex) Offer(block.post_dominator, guards);
    const Instruction& last = function_.instructions[block.end - 1];
    if (last.op != Op::kBra || last.guard == kNoIndex || block.successors.size() != 2) return;
    std::vector<Guard> more = guards;
    more.push_back({last.guard, last.guard_negated != 0});
    Offer(BlockAt(function_.Operands(last)[0].index), more);
    more.back().negated = !more.back().negated;
    Offer(BlockAt(block.end), more);
  }

  uint32_t BlockAt(uint32_t instruction) const {
    const auto begins_before = [](const Block& block, uint32_t at) { return block.begin < at; };
    return static_cast<uint32_t>(std::lower_bound(function_.blocks.begin(), function_.blocks.end(),
                                                  instruction, begins_before) -
                                 function_.blocks.begin());
  }

  const Function& function_;
  std::vector<std::optional<std::vector<Guard>>> found_;
  std::vector<bool> done_;
  std::array<std::vector<uint32_t>, kGuardsMax + 1> waiting_;  // by the number of guards
};

}  // namespace

std::vector<std::optional<std::vector<Guard>>> CertainBlocks(const Function& entry) {
  const std::vector<Instruction>& all = entry.instructions;
  if (std::any_of(all.begin(), all.end(), &IsOpaque))
    return std::vector<std::optional<std::vector<Guard>>>(entry.blocks.size());
  return BlockSearch(entry).Run();
}

}  // namespace replay
