#include "softgpu/jit/llvm/flow.h"

#include <algorithm>

#include "base/find.h"

namespace softgpu::jit {

using exec::Op;
using exec::Type;
using ptx::Special;

Form Linear(int64_t stride) { return stride == 0 ? kUniformForm : Form{Form::Of::kLinear, stride}; }

Form Combine(Form a, Form b) {
  if (a.of == Form::Of::kUnknown) return b;
  if (b.of == Form::Of::kUnknown || a == b) return a;
  return kVaryingForm;
}

bool Set::Merge(const Set& other) {
  bool grew = false;
  for (size_t n = 0; n < words_.size(); ++n) {
    const uint64_t now = words_[n] | other.words_[n];
    grew = grew || now != words_[n];
    words_[n] = now;
  }
  return grew;
}

Flow::Flow(const Program& p) : program(p) {
  for (const ProgramConstant& constant : p.constants) constants_[constant.offset] = &constant;
  for (const ProgramInst& inst : p.code) operands.push_back(OperandsOf(inst));
  for (uint32_t n = 0; n < p.code.size(); ++n) {
    if (!ShufflesByPattern(n)) continue;
    const ProgramInst& inst = p.code[n];
    operands[n] = {true, {{inst.a, Kind::k32}}, {{inst.d, Kind::k32}}};
    if (inst.guard != 0) operands[n].results.push_back({inst.guard, Kind::kPred});
  }
  FindRegisters();
  FindPostDominators();
  FindForms();
  FindEntries();
  FindLive();
  FindDirty();
}

void Flow::FindRegisters() {
  for (const Operands& o : operands) {
    if (!o.native) continue;
    for (const std::vector<Place>* places : {&o.sources, &o.results}) {
      for (const Place& place : *places) {
        if (place.offset == 0 || IsConstant(place.offset)) continue;
        const auto [it, added] =
            index_.emplace(std::pair(place.offset, place.kind), registers.size());
        if (added) registers.push_back(place);
      }
    }
  }
}

uint32_t Flow::Find(Place place) const {
  return base::FindOr(index_, std::pair(place.offset, place.kind), kNone);
}

std::vector<uint32_t> Flow::At(uint32_t offset) const {
  std::vector<uint32_t> found;
  for (auto it = index_.lower_bound({offset, Kind::kPred});
       it != index_.end() && it->first.first == offset; ++it) {
    found.push_back(it->second);
  }
  return found;
}

const ProgramConstant* Flow::ConstantAt(uint32_t offset) const {
  return base::FindOr(constants_, offset, nullptr);
}

Form Flow::FormOf(Place place) const {
  if (IsConstant(place.offset)) return kUniformForm;
  const uint32_t reg = Find(place);
  return reg == kNone ? kVaryingForm : forms[reg];
}

bool Flow::Leaves(uint32_t n) const {
  const Step step = program.code[n].step;
  return step == Step::kWait || step == Step::kLeave || step == Step::kLeaveWild ||
         step == Step::kBarrier || step == Step::kEnd || step == Step::kExit ||
         (step == Step::kShuffle && !ShufflesByPattern(n));
}

bool Flow::ShufflesByPattern(uint32_t n) const {
  const ProgramInst& inst = program.code[n];
  if (inst.step != Step::kShuffle || inst.guarded != 0) return false;
  for (uint32_t offset : {inst.b, inst.c, inst.e}) {
    const ProgramConstant* constant = ConstantAt(offset);
    if (constant == nullptr || !constant->known) return false;
  }
  return static_cast<uint32_t>(ConstantAt(inst.e)->bits) == exec::kFullMask;
}

bool Flow::Diverges(uint32_t n) const {
  const ProgramInst& inst = program.code[n];
  return inst.step == Step::kBranchIf && FormOf({inst.guard & ~1u, Kind::kPred}).Varies();
}

std::vector<uint32_t> Flow::Successors(uint32_t n) const {
  const ProgramInst& inst = program.code[n];
  const uint32_t next = n + 1;
  if (inst.step == Step::kEnd || inst.step == Step::kExit || next >= program.code.size()) return {};
  if (inst.step == Step::kBranch) return {inst.target};
  if (inst.step == Step::kBranchIf || inst.step == Step::kWait) return {next, inst.target};
  std::vector<uint32_t> all = {next};
  if (inst.step == Step::kLeave && inst.target != 0) {
    const std::vector<uint32_t>& table = program.tables[inst.target - 1];
    all.insert(all.end(), table.begin(), table.end());
  }
  return all;
}

// Cooper, Harvey and Kennedy over instructions, from the end; code.size() is the end.
void Flow::FindPostDominators() {
  const uint32_t end = static_cast<uint32_t>(program.code.size());
  std::vector<std::vector<uint32_t>> before(end + 1), after(end);
  for (uint32_t n = 0; n < end; ++n) {
    after[n] = Successors(n);
    if (after[n].empty()) after[n].push_back(end);
    for (uint32_t to : after[n]) before[to].push_back(n);
  }
  std::vector<uint32_t> order, number(end + 1, kNone);
  std::vector<std::pair<uint32_t, size_t>> stack = {{end, 0}};
  std::vector<bool> seen(end + 1);
  seen[end] = true;
  while (!stack.empty()) {
    const uint32_t at = stack.back().first;
    if (stack.back().second < before[at].size()) {
      const uint32_t next = before[at][stack.back().second++];
      if (!seen[next]) stack.emplace_back(next, 0);
      seen[next] = true;
    } else {
      number[at] = static_cast<uint32_t>(order.size());
      order.push_back(at);
      stack.pop_back();
    }
  }
  post_dominator_.assign(end + 1, kNone);
  post_dominator_[end] = end;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t k = order.size() - 1; k-- > 0;) {
      uint32_t chosen = kNone;
      for (uint32_t to : after[order[k]]) {
        if (post_dominator_[to] == kNone) continue;
        uint32_t other = to;
        while (chosen != kNone && chosen != other) {
          uint32_t& farther = number[chosen] < number[other] ? chosen : other;
          farther = post_dominator_[farther];
        }
        chosen = other;
      }
      changed = changed || post_dominator_[order[k]] != chosen;
      post_dominator_[order[k]] = chosen;
    }
  }
  for (uint32_t& p : post_dominator_) p = p == end ? kNone : p;
}

void Flow::FindEntries() {
  leaders.assign(program.code.size() + 1, false);
  entries.assign(program.code.size() + 1, false);
  entries[0] = true;
  for (uint32_t n = 0; n < program.code.size(); ++n) {
    const ProgramInst& inst = program.code[n];
    const bool branch = inst.step == Step::kBranch || inst.step == Step::kBranchIf;
    if (branch) leaders[n + 1] = leaders[inst.target] = true;
    if (branch && inst.target <= n) entries[inst.target] = true;
    const bool may_leave = inst.step == Step::kJoin || inst.step == Step::kShuffle;
    if (!Leaves(n) && !Diverges(n) && !may_leave) continue;
    for (uint32_t to : Successors(n)) entries[to] = true;
  }
  for (size_t n = 0; n < leaders.size(); ++n) leaders[n] = leaders[n] || entries[n];
}

Set Flow::Reads(uint32_t n) const {
  Set reads(registers.size());
  const Operands& o = operands[n];
  if (program.code[n].step == Step::kLeaveWild) {
    reads.Fill();
    return reads;
  }
  for (const Place& place : o.sources) {
    if (o.native) {
      const uint32_t reg = Find(place);
      if (reg != kNone) reads.Add(reg);
    } else {
      for (uint32_t reg : At(place.offset)) reads.Add(reg);
    }
  }
  // A guarded result keeps what it was in other lanes.
  for (const Place& place : o.results) {
    const uint32_t reg = Find(place);
    if (program.code[n].guarded != 0 && reg != kNone) reads.Add(reg);
  }
  return reads;
}

void Flow::FindLive() {
  const uint32_t count = static_cast<uint32_t>(program.code.size());
  live.assign(count + 1, Set(registers.size()));
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t n = count; n-- > 0;) {
      Set now(registers.size());
      for (uint32_t to : Successors(n)) now.Merge(live[to]);
      if (program.code[n].guarded == 0) {
        for (const Place& place : operands[n].results) {
          const uint32_t reg = Find(place);
          if (reg != kNone) now.Remove(reg);
        }
      }
      now.Merge(Reads(n));
      changed = live[n].Merge(now) || changed;
    }
  }
}

void Flow::FindDirty() {
  const uint32_t count = static_cast<uint32_t>(program.code.size());
  dirty.assign(count + 1, Set(registers.size()));
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t n = 0; n < count; ++n) {
      if (Leaves(n)) continue;  // goes on from the frame
      Set now = dirty[n];
      for (const Place& place : operands[n].results) {
        const uint32_t reg = Find(place);
        if (reg != kNone) now.Add(reg);
      }
      for (uint32_t to : Successors(n)) changed = dirty[to].Merge(now) || changed;
    }
  }
}

}  // namespace softgpu::jit
