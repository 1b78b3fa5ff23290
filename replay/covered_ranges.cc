#include "replay/covered_ranges.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "replay/affine_forms.h"

namespace replay {
namespace {

using scheduler::streams::Range;
using Int = __int128;

constexpr Int kPiecesMax = 1024;  // that are looked at one by one

struct Piece {
  Int begin = 0, end = 0;
};
using Pieces = std::vector<Piece>;  // ascending and apart

// So many places, this far from each other.
struct Steps {
  Int step = 0, count = 0;
  bool operator<(const Steps& other) const {
    return std::pair(step, count) < std::pair(other.step, other.count);
  }
};

// Values that conditions leave to a sum without its constant.
struct Cut {
  std::array<Int, kAxes> factors{};
  Int low = 0, high = 0;
};

Int FloorOfQuotient(Int number, Int divisor) {
  const Int quotient = number / divisor;
  return quotient * divisor > number ? quotient - 1 : quotient;
}

Int Absolute(Int number) { return number < 0 ? -number : number; }

void Merge(Pieces* pieces) {
  std::sort(pieces->begin(), pieces->end(),
            [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
  Pieces merged;
  for (const Piece& piece : *pieces) {
    if (!merged.empty() && piece.begin <= merged.back().end) {
      merged.back().end = std::max(merged.back().end, piece.end);
    } else {
      merged.push_back(piece);
    }
  }
  *pieces = std::move(merged);
}

// The pieces again at each step. Where they are too many, the first step's alone: what is left out
// counts as not covered.
void Repeat(const Steps& steps, Pieces* pieces) {
  const bool leaves_no_gap = std::all_of(pieces->begin(), pieces->end(), [&](const Piece& piece) {
    return piece.end - piece.begin >= steps.step;
  });
  if (leaves_no_gap) {
    for (Piece& piece : *pieces) piece.end += steps.step * (steps.count - 1);
  } else if (static_cast<Int>(pieces->size()) * steps.count <= kPiecesMax) {
    const Pieces first = *pieces;
    for (Int i = 1; i < steps.count; ++i) {
      for (const Piece& piece : first)
        pieces->push_back({piece.begin + i * steps.step, piece.end + i * steps.step});
    }
  }
  Merge(pieces);
}

// One store: the places that it reaches.
class StorePlaces {
 public:
  StorePlaces(const AffineForms& forms, const CertainStore& store) : forms_(forms), store_(store) {}

  // False: they are not known, or there are none.
  bool Find() {
    for (const Condition& condition : store_.conditions) {
      if (!AddCondition(condition)) return false;
    }
    const std::optional<AffineForm> address = forms_.AsInteger(store_.address, 64, false);
    if (!address.has_value()) return false;
    begin_ = address->constant;
    std::array<Int, kAxes> factors = address->factors;
    for (const Cut& cut : cuts_) {
      if (!TakeCut(cut, &factors)) return false;
    }
    for (size_t axis = 0; axis < kAxes; ++axis) AddSteps(factors[axis], 0, forms_.count(axis) - 1);
    std::sort(steps_.begin(), steps_.end());
    return true;
  }
  Int begin() const { return begin_; }
  const std::vector<Steps>& steps() const { return steps_; }

 private:
  bool AddCondition(const Condition& condition) {
    const std::optional<AffineForm> left =
        forms_.AsInteger(condition.left, condition.bits, condition.is_signed);
    const std::optional<AffineForm> right =
        forms_.AsInteger(condition.right, condition.bits, condition.is_signed);
    if (!left.has_value() || !right.has_value()) return false;
    AffineForm difference;
    for (size_t axis = 0; axis < kAxes; ++axis)
      difference.factors[axis] = left->factors[axis] - right->factors[axis];
    const Int at_most = right->constant - left->constant - (condition.or_equal ? 0 : 1);
    const Interval bounds = forms_.BoundsOf(difference);
    if (bounds.high <= at_most) return true;
    return bounds.low <= at_most && AddBound(difference.factors, at_most);
  }

  // The sum of the factors is at most this. Conditions on one index have equal factors then.
  bool AddBound(std::array<Int, kAxes> factors, Int at_most) {
    Int divisor = 0, sign = 0;
    for (size_t axis = 0; axis < kAxes; ++axis) {
      if (forms_.count(axis) <= 1) factors[axis] = 0;
      const Int factor = factors[axis];
      if (factor == 0) continue;
      divisor = std::gcd(static_cast<uint64_t>(divisor), static_cast<uint64_t>(Absolute(factor)));
      if (sign == 0) sign = factor < 0 ? -1 : 1;
    }
    for (Int& factor : factors) factor = factor * sign / divisor;
    Cut* const cut = CutOf(factors);
    if (cut == nullptr) return false;
    const Int bound = FloorOfQuotient(at_most, divisor);
    if (sign > 0) {
      cut->high = std::min(cut->high, bound);
    } else {
      cut->low = std::max(cut->low, -bound);
    }
    return cut->low <= cut->high;
  }

  // Null: another condition is on one of these numbers in another way.
  Cut* CutOf(const std::array<Int, kAxes>& factors) {
    for (Cut& cut : cuts_) {
      if (cut.factors == factors) return &cut;
      for (size_t axis = 0; axis < kAxes; ++axis) {
        if (cut.factors[axis] != 0 && factors[axis] != 0) return nullptr;
      }
    }
    if (!TakesAllValues(factors)) return nullptr;
    const Interval bounds = forms_.BoundsOf({.factors = factors});
    cuts_.push_back({factors, bounds.low, bounds.high});
    return &cuts_.back();
  }

  // Whether the sum is each integer between its bounds for some thread.
  bool TakesAllValues(const std::array<Int, kAxes>& factors) const {
    std::vector<std::pair<Int, Int>> parts;  // factor, count
    for (size_t axis = 0; axis < kAxes; ++axis) {
      if (factors[axis] != 0) parts.emplace_back(Absolute(factors[axis]), forms_.count(axis));
    }
    std::sort(parts.begin(), parts.end());
    Int reached = 1;
    for (const auto& [factor, count] : parts) {
      if (factor > reached) return false;
      reached += factor * (count - 1);
    }
    return true;
  }

  // The address moves with the index that is cut: by one step for each of its values.
  bool TakeCut(const Cut& cut, std::array<Int, kAxes>* factors) {
    std::optional<Int> step;
    for (size_t axis = 0; axis < kAxes; ++axis) {
      if (cut.factors[axis] == 0) continue;
      Int& factor = (*factors)[axis];
      const Int here = factor / cut.factors[axis];
      if (here * cut.factors[axis] != factor || step.value_or(here) != here) return false;
      step = here;
      factor = 0;
    }
    AddSteps(*step, cut.low, cut.high);
    return true;
  }

  void AddSteps(Int step, Int first, Int last) {
    begin_ += step < 0 ? step * last : step * first;
    if (step != 0 && first != last) steps_.push_back({Absolute(step), last - first + 1});
  }

  const AffineForms& forms_;
  const CertainStore& store_;
  std::vector<Cut> cuts_;
  Int begin_ = 0;
  std::vector<Steps> steps_;  // ascending
};

}  // namespace

std::vector<Range> CoveredRanges(const KernelStores& stores, const Grid& grid,
                                 std::span<const std::byte> parameters) {
  const AffineForms forms(stores.expressions, grid, parameters);
  std::map<std::vector<Steps>, Pieces> by_steps;  // unrolled loops store several pieces at a step
  for (const CertainStore& store : stores.stores) {
    StorePlaces places(forms, store);
    if (places.Find())
      by_steps[places.steps()].push_back({places.begin(), places.begin() + store.bytes});
  }
  Pieces all;
  for (auto& [steps, pieces] : by_steps) {
    Merge(&pieces);
    for (const Steps& each : steps) Repeat(each, &pieces);
    all.insert(all.end(), pieces.begin(), pieces.end());
  }
  Merge(&all);
  std::vector<Range> ranges;
  for (const Piece& piece : all)
    ranges.push_back(
        {static_cast<uint64_t>(piece.begin), static_cast<uint64_t>(piece.end - piece.begin)});
  return ranges;
}

}  // namespace replay
