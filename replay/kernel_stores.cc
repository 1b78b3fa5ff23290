#include "replay/kernel_stores.h"

#include <optional>
#include <utility>

#include "replay/address_terms.h"
#include "replay/arithmetic.h"
#include "replay/certain_blocks.h"
#include "softgpu/ptx/ir.h"

namespace replay {
namespace {

using softgpu::ptx::Block;
using softgpu::ptx::Combine;
using softgpu::ptx::Compare;
using softgpu::ptx::Function;
using softgpu::ptx::Instruction;
using softgpu::ptx::kNoIndex;
using softgpu::ptx::Op;
using softgpu::ptx::Operand;
using softgpu::ptx::Space;
using softgpu::ptx::Type;

constexpr int kPredicateDepthMax = 16;  // of predicates made of predicates
constexpr size_t kStoresMax = 256;

// What a comparison asks of its operands, in their order or the other way round.
struct Comparison {
  bool swapped = false, or_equal = false, is_unsigned = false;
};

std::optional<Comparison> ComparisonOf(Compare compare) {
  switch (compare) {
    case Compare::kLt:
      return Comparison{};
    case Compare::kLe:
      return Comparison{.or_equal = true};
    case Compare::kGt:
      return Comparison{.swapped = true};
    case Compare::kGe:
      return Comparison{.swapped = true, .or_equal = true};
    case Compare::kLo:
      return Comparison{.is_unsigned = true};
    case Compare::kLs:
      return Comparison{.or_equal = true, .is_unsigned = true};
    case Compare::kHi:
      return Comparison{.swapped = true, .is_unsigned = true};
    case Compare::kHs:
      return Comparison{.swapped = true, .or_equal = true, .is_unsigned = true};
    default:
      return std::nullopt;
  }
}

class StoreCollector {
 public:
  StoreCollector(const Function& entry, KernelStores* out)
      : entry_(entry), terms_(entry, &out->expressions), out_(out) {}

  void Run() {
    const std::vector<std::optional<std::vector<Guard>>> certain = CertainBlocks(entry_);
    for (size_t b = 0; b < entry_.blocks.size(); ++b) {
      if (!certain[b].has_value()) continue;
      const Block& block = entry_.blocks[b];
      for (uint32_t n = block.begin; n < block.end; ++n) Visit(entry_.instructions[n], *certain[b]);
    }
  }

 private:
  void Visit(const Instruction& i, std::vector<Guard> guards) {
    const bool is_global = i.space == Space::kGlobal || i.space == Space::kGeneric;
    if (i.op != Op::kSt || !is_global || i.Has(softgpu::ptx::kVolatile)) return;
    if (out_->stores.size() >= kStoresMax) return;
    const Operand* o = entry_.Operands(i);
    CertainStore store{.address = terms_.Of(o[0], 64), .bytes = BytesOf(i, o[1])};
    if (store.address == kNoTerm) return;
    if (i.guard != kNoIndex) guards.push_back({i.guard, i.guard_negated != 0});
    for (const Guard& guard : guards) {
      if (!Add(guard, 0, &store.conditions)) return;
    }
    out_->stores.push_back(std::move(store));
  }

  // What must hold for the guard to hold. False: that is not known.
  bool Add(const Guard& guard, int depth, std::vector<Condition>* conditions) {
    const Instruction* const setter = terms_.SetterOf(guard.predicate);
    if (setter == nullptr || depth == kPredicateDepthMax) return false;
    const Operand* o = entry_.Operands(*setter);
    const auto both = [&] {
      return AddOperand(o[1], guard.negated, depth, conditions) &&
             AddOperand(o[2], guard.negated, depth, conditions);
    };
    switch (setter->op) {
      case Op::kSetp:
        return AddComparison(*setter, guard, conditions);
      case Op::kAnd:
        return !guard.negated && both();
      case Op::kOr:  // none of two holds where each does not
        return guard.negated && both();
      case Op::kNot:
        return AddOperand(o[1], !guard.negated, depth, conditions);
      case Op::kMov:
        return AddOperand(o[1], guard.negated, depth, conditions);
      default:
        return false;
    }
  }

  bool AddOperand(const Operand& operand, bool negated, int depth,
                  std::vector<Condition>* conditions) {
    if (operand.kind != Operand::Kind::kRegister) return false;
    return Add({operand.index, negated != operand.negated}, depth + 1, conditions);
  }

  // %p|%q: the second predicate is the opposite of the first.
  bool AddComparison(const Instruction& i, const Guard& guard, std::vector<Condition>* conditions) {
    const Operand* o = entry_.Operands(i);
    const std::optional<Comparison> order = ComparisonOf(static_cast<Compare>(i.mode));
    const uint32_t bits = softgpu::ptx::Bits(i.type);
    const bool is_integer = !softgpu::ptx::IsFloat(i.type) && (bits == 32 || bits == 64);
    if (!order.has_value() || !is_integer || i.combine != Combine::kNone) return false;
    Condition condition{.left = terms_.Of(o[1], static_cast<uint8_t>(bits)),
                        .right = terms_.Of(o[2], static_cast<uint8_t>(bits)),
                        .or_equal = order->or_equal,
                        .is_signed = softgpu::ptx::IsSigned(i.type) && !order->is_unsigned,
                        .bits = static_cast<uint8_t>(bits)};
    if (condition.left == kNoTerm || condition.right == kNoTerm) return false;
    const bool is_second = o[0].kind != Operand::Kind::kRegister || o[0].index != guard.predicate;
    const bool negated = guard.negated != is_second;
    if (order->swapped != negated) std::swap(condition.left, condition.right);
    if (negated) condition.or_equal = !condition.or_equal;
    conditions->push_back(condition);
    return true;
  }

  const Function& entry_;
  AddressTerms terms_;
  KernelStores* const out_;
};

}  // namespace

KernelStores StoresOf(const softgpu::ptx::KernelImpl& kernel) {
  KernelStores stores;
  StoreCollector(kernel.function(), &stores).Run();
  return stores;
}

}  // namespace replay
