#include "replay/conditions.h"

#include <optional>
#include <utility>

namespace replay {
namespace {

using softgpu::ptx::Combine;
using softgpu::ptx::Compare;
using softgpu::ptx::Function;
using softgpu::ptx::Instruction;
using softgpu::ptx::Op;
using softgpu::ptx::Operand;

constexpr int kPredicateDepthMax = 16;  // of predicates made of predicates

// A comparison as "less" or "less or equal", of its operands in their order or the other way round.
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

class Collector {
 public:
  Collector(const Function& entry, AddressTerms* terms, std::vector<Condition>* conditions)
      : entry_(entry), terms_(*terms), conditions_(*conditions) {}

  bool Add(const Guard& guard, int depth) {
    const Instruction* const setter = terms_.SetterOf(guard.predicate);
    if (setter == nullptr || depth == kPredicateDepthMax) return false;
    const Operand* o = entry_.Operands(*setter);
    switch (setter->op) {
      case Op::kSetp:
        return AddComparison(*setter, guard);
      case Op::kAnd:
        return !guard.negated && AddBoth(o[1], o[2], guard.negated, depth);
      case Op::kOr:  // none of two holds where each does not
        return guard.negated && AddBoth(o[1], o[2], guard.negated, depth);
      case Op::kNot:
        return AddOperand(o[1], !guard.negated, depth);
      case Op::kMov:
        return AddOperand(o[1], guard.negated, depth);
      default:
        return false;
    }
  }

 private:
  // One that is not known leaves the other one.
  bool AddBoth(const Operand& a, const Operand& b, bool negated, int depth) {
    const bool first = AddOperand(a, negated, depth);
    const bool second = AddOperand(b, negated, depth);
    return first && second;
  }

  bool AddOperand(const Operand& operand, bool negated, int depth) {
    if (operand.kind != Operand::Kind::kRegister) return false;
    return Add({operand.index, negated != operand.negated}, depth + 1);
  }

  // %p|%q: the second predicate is the opposite of the first.
  bool AddComparison(const Instruction& i, const Guard& guard) {
    const Operand* o = entry_.Operands(i);
    const uint32_t bits = softgpu::ptx::Bits(i.type);
    const bool is_integer = !softgpu::ptx::IsFloat(i.type) && (bits == 32 || bits == 64);
    if (!is_integer || i.combine != Combine::kNone) return false;
    Condition condition{.left = terms_.Of(o[1], static_cast<uint8_t>(bits)),
                        .right = terms_.Of(o[2], static_cast<uint8_t>(bits)),
                        .is_signed = softgpu::ptx::IsSigned(i.type),
                        .bits = static_cast<uint8_t>(bits)};
    if (condition.left == kNoTerm || condition.right == kNoTerm) return false;
    const bool is_second = o[0].kind != Operand::Kind::kRegister || o[0].index != guard.predicate;
    const bool negated = guard.negated != is_second;
    const Compare compare = static_cast<Compare>(i.mode);
    if (compare == (negated ? Compare::kNe : Compare::kEq)) return AddEquality(condition);
    const std::optional<Comparison> order = ComparisonOf(compare);
    if (!order.has_value()) return false;
    if (order->is_unsigned) condition.is_signed = false;
    if (order->swapped != negated) std::swap(condition.left, condition.right);
    condition.or_equal = order->or_equal != negated;
    conditions_.push_back(condition);
    return true;
  }

  bool AddEquality(Condition condition) {
    condition.or_equal = true;
    conditions_.push_back(condition);
    std::swap(condition.left, condition.right);
    conditions_.push_back(condition);
    return true;
  }

  const Function& entry_;
  AddressTerms& terms_;
  std::vector<Condition>& conditions_;
};

}  // namespace

bool AddConditions(const Function& entry, AddressTerms* terms, const Guard& guard,
                   std::vector<Condition>* conditions) {
  return Collector(entry, terms, conditions).Add(guard, 0);
}

}  // namespace replay
