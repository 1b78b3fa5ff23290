#include "replay/kernel_access.h"

#include <algorithm>
#include <utility>

#include "replay/address_terms.h"
#include "replay/arithmetic.h"
#include "replay/conditions.h"
#include "replay/data_flow.h"
#include "replay/movable_parameters.h"
#include "replay/necessary_guards.h"
#include "softgpu/ptx/ir.h"

namespace replay {

using softgpu::ptx::AsyncMode;
using softgpu::ptx::Function;
using softgpu::ptx::Instruction;
using softgpu::ptx::kNoIndex;
using softgpu::ptx::Op;
using softgpu::ptx::Operand;
using softgpu::ptx::Space;

namespace {

// An operand through which an instruction reaches memory.
struct Reach {
  const Operand* address;
  Space space;
  uint8_t use;
  uint32_t bytes;  // 0: how many is not known
};

std::vector<Reach> ReachOf(const Function& function, const Instruction& i) {
  const Operand* o = function.Operands(i);
  switch (i.op) {
    case Op::kLd:
    case Op::kLdu:
      return {{&o[1], i.space, kReads, BytesOf(i, o[0])}};
    case Op::kSt:
    case Op::kStAsync:
      return {{&o[0], i.space, kWrites, BytesOf(i, o[1])}};
    case Op::kAtom:
      return {{&o[1], i.space, kUpdates, softgpu::ptx::Bytes(i.type) * i.vector}};
    case Op::kRed:
    case Op::kRedAsync:
      return {{&o[0], i.space, kUpdates, softgpu::ptx::Bytes(i.type) * i.vector}};
    case Op::kDiscard:
      return {{&o[0], i.space, kWrites, 128}};
    case Op::kCpAsync:
      if (static_cast<AsyncMode>(i.mode) != AsyncMode::kCopy || i.count < 2) return {};
      return {{&o[1], Space::kGlobal, kReads, 16}};
    case Op::kCpBulk:
      if (i.count < 3) return {};
      return {{&o[0], i.space, kWrites, 0}, {&o[1], i.space2, kReads, 0}};
    case Op::kCpReduceBulk:
      return {{&o[0], i.space, kUpdates, 0}, {&o[1], i.space2, kReads, 0}};
    case Op::kWmmaLoadA:
    case Op::kWmmaLoadB:
    case Op::kWmmaLoadC:
      return {{&o[1], i.space, kReads, 0}};
    case Op::kWmmaStoreD:
      return {{&o[0], i.space, kWrites, 0}};
    default:
      return {};
  }
}

class AccessCollector {
 public:
  AccessCollector(const softgpu::ptx::KernelImpl& kernel, KernelAccess* out)
      : kernel_(kernel), flow_(kernel), terms_(kernel.function(), &out->expressions), out_(out) {}

  void Run() {
    flow_.Solve();
    for (const Function* function : kernel_.reachable()) {
      if (function->entry) {
        VisitEntry(*function);
      } else {
        for (const Instruction& i : function->instructions) Visit(*function, i);
      }
    }
    out_->origins = flow_.origins();
    if (!flow_.failed().empty()) out_->unknown = flow_.failed();
    if (!out_->unknown.empty()) return out_->accesses.clear();
    out_->movable = MovableParameters(kernel_, &flow_);
    out_->stores = StoresOf(kernel_.function(), &terms_);
  }

 private:
  // An entry has expressions (address_terms.h), and with them conditions. A function that is called
  // has neither: its registers hold what each caller has passed.
  void VisitEntry(const Function& entry) {
    const std::vector<std::vector<Guard>> guards = NecessaryGuards(entry);
    for (size_t b = 0; b < entry.blocks.size(); ++b) {
      conditions_.clear();
      for (const Guard& guard : guards[b]) AddConditions(entry, guard, &conditions_);
      const softgpu::ptx::Block& block = entry.blocks[b];
      for (uint32_t n = block.begin; n < block.end; ++n) Visit(entry, entry.instructions[n]);
    }
  }

  // Leaves out conditions that hold for all threads of a launch or for none. They cut no range, and
  // an order would depend on the numbers that the kernel compares.
  void AddConditions(const Function& entry, const Guard& guard,
                     std::vector<Condition>* conditions) {
    std::vector<Condition> all;
    replay::AddConditions(entry, &terms_, guard, &all);
    for (const Condition& each : all) {
      const Expressions& expressions = out_->expressions;
      if (expressions.DiffersByThread(each.left) || expressions.DiffersByThread(each.right))
        conditions->push_back(each);
    }
  }

  void Visit(const Function& function, const Instruction& i) {
    for (const Reach& reach : ReachOf(function, i)) {
      if (!IsPrivate(function, reach)) Note(function, i, reach);
    }
    if (i.op == Op::kSt || i.op == Op::kAtom || i.op == Op::kRed) NoteEscapes(function, i);
  }

  // Whether the instruction or the symbol says that no other kernel sees the memory.
  bool IsPrivate(const Function& function, const Reach& reach) const {
    if (reach.address->kind == Operand::Kind::kSymbol) {
      return SymbolOf(kernel_, function, *reach.address).variable == kNoIndex;
    }
    return reach.space == Space::kShared || reach.space == Space::kLocal ||
           reach.space == Space::kParam;
  }

  void Note(const Function& function, const Instruction& i, const Reach& reach) {
    Access access;
    access.use = reach.use;
    access.bytes = reach.bytes;
    access.line = i.line;
    access.address = flow_.ValueOf(function, *reach.address);
    const std::vector<OriginSet>& choices = access.address.alternatives();
    if (access.address.unknown() || choices.empty()) {
      return NoteUnknown(i.line, "comes from too many places");
    }
    if (std::all_of(choices.begin(), choices.end(), [](OriginSet s) { return s == kPrivate; })) {
      return;
    }
    for (OriginSet choice : choices) {
      if (choice != 0 && (choice & kLoaded) == 0) continue;
      return NoteUnknown(
          i.line, choice != 0 ? "was read from memory" : "comes from no parameter or variable");
    }
    if (function.entry && reach.bytes != 0) access.range = terms_.Of(*reach.address, 64);
    if (access.range != kNoTerm) {
      // The block's conditions, and the instruction's own. Most instructions reach no memory, so
      // their guards are not looked at.
      access.conditions = conditions_;
      if (i.guard != kNoIndex)
        AddConditions(function, {i.guard, i.guard_negated != 0}, &access.conditions);
    }
    Add(std::move(access));
  }

  void NoteUnknown(int line, const char* why) {
    if (!out_->unknown.empty()) return;
    out_->unknown = "the address in line " + std::to_string(line) + " " + why;
  }

  void NoteEscapes(const Function& function, const Instruction& i) {
    if (softgpu::ptx::Bytes(i.type) < 8) return;
    const Operand* o = function.Operands(i);
    const uint32_t first = i.op == Op::kAtom ? 2 : 1;
    for (uint32_t k = first; k < i.count; ++k) {
      const Origins stored = flow_.ValueOf(function, o[k]);
      for (OriginSet each : stored.alternatives()) {
        out_->escapes |= each & ~(kPrivate | kLoaded);
      }
    }
  }

  // From kAccessesMax on, accesses of the same origins and use are one, without ranges.
  void Add(Access access) {
    if (merges_) {
      access.range = kNoTerm;
      access.conditions.clear();
    }
    const auto alike = [&](const Access& each) {
      return each.use == access.use && each.range == access.range &&
             each.conditions == access.conditions && (merges_ || each.bytes == access.bytes) &&
             each.address == access.address;
    };
    std::vector<Access>& all = out_->accesses;
    if (std::any_of(all.begin(), all.end(), alike)) return;
    all.push_back(std::move(access));
    if (merges_ || all.size() < kAccessesMax) return;
    merges_ = true;
    for (Access& each : std::exchange(all, {})) Add(std::move(each));
  }

  const softgpu::ptx::KernelImpl& kernel_;
  DataFlow flow_;
  AddressTerms terms_;
  KernelAccess* const out_;
  std::vector<Condition> conditions_;  // of the block that is visited
  bool merges_ = false;
};

}  // namespace

KernelAccess Analyse(const softgpu::ptx::KernelImpl& kernel) {
  KernelAccess access;
  access.kernel = kernel.name();
  AccessCollector(kernel, &access).Run();
  return access;
}

}  // namespace replay
