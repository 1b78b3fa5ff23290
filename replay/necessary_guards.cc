#include "replay/necessary_guards.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace replay {
namespace {

using softgpu::ptx::Block;
using softgpu::ptx::Function;
using softgpu::ptx::Instruction;
using softgpu::ptx::kNoIndex;
using softgpu::ptx::Op;

constexpr size_t kKeptGuardsMax = 16;  // more are dropped, which leaves a weaker condition

using Guards = std::vector<Guard>;

bool Contains(const Guards& guards, const Guard& guard) {
  return std::any_of(guards.begin(), guards.end(), [&](const Guard& each) {
    return each.predicate == guard.predicate && each.negated == guard.negated;
  });
}

// The condition under which a thread goes from the block to its successor; nothing: there is none,
// or both ways lead there. Behind a guarded return are the threads that did not return.
std::optional<Guard> GuardOfEdge(const Function& function, const Block& from, uint32_t to) {
  const Instruction& last = function.instructions[from.end - 1];
  if (last.guard == kNoIndex) return std::nullopt;
  const bool falls_through = function.blocks[to].begin == from.end;
  const bool branches = last.op == Op::kBra && from.successors.size() == 2;
  const bool returns = (last.op == Op::kRet || last.op == Op::kExit) && falls_through;
  if (!branches && !returns) return std::nullopt;
  return Guard{last.guard, (last.guard_negated != 0) != falls_through};
}

// What holds on all ways to a block that were looked at so far; nothing: no way was yet.
class GuardSearch {
 public:
  explicit GuardSearch(const Function& function) : function_(function) {}

  // Lists only become shorter, so this ends.
  std::vector<Guards> Run() {
    found_.resize(function_.blocks.size());
    if (!found_.empty()) found_[0].emplace();
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = 0; b < function_.blocks.size(); ++b) {
        if (found_[b].has_value()) changed = GoOn(function_.blocks[b], *found_[b]) || changed;
      }
    }
    std::vector<Guards> guards;
    for (std::optional<Guards>& each : found_)
      guards.push_back(each.has_value() ? std::move(*each) : Guards());
    return guards;
  }

 private:
  bool GoOn(const Block& block, const Guards& guards) {
    bool changed = false;
    for (const uint32_t successor : block.successors) {
      if (successor >= found_.size()) continue;  // the exit
      Guards there = guards;
      const std::optional<Guard> more = GuardOfEdge(function_, block, successor);
      if (more.has_value() && there.size() < kKeptGuardsMax && !Contains(there, *more))
        there.push_back(*more);
      changed = Meet(std::move(there), &found_[successor]) || changed;
    }
    return changed;
  }

  static bool Meet(Guards here, std::optional<Guards>* found) {
    if (!found->has_value()) {
      *found = std::move(here);
      return true;
    }
    const size_t removed =
        std::erase_if(**found, [&](const Guard& guard) { return !Contains(here, guard); });
    return removed != 0;
  }

  const Function& function_;
  std::vector<std::optional<Guards>> found_;  // by block
};

}  // namespace

std::vector<std::vector<Guard>> NecessaryGuards(const Function& entry) {
  const std::vector<Instruction>& all = entry.instructions;
  const bool jumps =
      std::any_of(all.begin(), all.end(), [](const Instruction& i) { return i.op == Op::kBrx; });
  if (jumps) return std::vector<std::vector<Guard>>(entry.blocks.size());
  return GuardSearch(entry).Run();
}

}  // namespace replay
