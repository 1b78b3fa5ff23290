#include "replay/guarded_places.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <utility>

namespace replay {
namespace {

using Int = __int128;

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

class Finder {
 public:
  explicit Finder(const AffineForms& forms) : forms_(forms) {}

  GuardedPlaces Run(const AffineForm& address, std::span<const Condition> conditions) {
    for (const Condition& condition : conditions) Note(Add(condition));
    places_.begin = address.constant;
    std::array<Int, kAxes> factors = address.factors;
    for (const Cut& cut : cuts_) Note(TakeCut(cut, &factors) ? Fit::kFits : Fit::kUnknown);
    for (size_t axis = 0; axis < kAxes; ++axis) AddSteps(factors[axis], 0, forms_.count(axis) - 1);
    std::sort(places_.steps.begin(), places_.steps.end());
    return std::move(places_);
  }

 private:
  enum class Fit { kFits, kUnknown, kNever };

  void Note(Fit fit) {
    places_.exact = places_.exact && fit != Fit::kUnknown;
    places_.reached = places_.reached && fit != Fit::kNever;
  }

  Fit Add(const Condition& condition) {
    const std::optional<AffineForm> left =
        forms_.AsInteger(condition.left, condition.bits, condition.is_signed);
    const std::optional<AffineForm> right =
        forms_.AsInteger(condition.right, condition.bits, condition.is_signed);
    if (!left.has_value() || !right.has_value()) return Fit::kUnknown;
    AffineForm difference;
    for (size_t axis = 0; axis < kAxes; ++axis)
      difference.factors[axis] = left->factors[axis] - right->factors[axis];
    const Int at_most = right->constant - left->constant - (condition.or_equal ? 0 : 1);
    const Interval bounds = forms_.BoundsOf(difference);
    if (bounds.high <= at_most) return Fit::kFits;
    return bounds.low <= at_most ? AddBound(difference.factors, at_most) : Fit::kNever;
  }

  // The sum of the factors is at most this. Conditions on one index have equal factors then.
  Fit AddBound(std::array<Int, kAxes> factors, Int at_most) {
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
    if (cut == nullptr) return Fit::kUnknown;
    const Int bound = FloorOfQuotient(at_most, divisor);
    if (sign > 0) {
      cut->high = std::min(cut->high, bound);
    } else {
      cut->low = std::max(cut->low, -bound);
    }
    return cut->low <= cut->high ? Fit::kFits : Fit::kNever;
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

  // True when the sum is each integer between its bounds for some thread.
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

  // The address moves with the index that is cut: by one step for each of its values. False: it
  // moves otherwise, and `factors` are as before.
  bool TakeCut(const Cut& cut, std::array<Int, kAxes>* factors) {
    std::optional<Int> step;
    for (size_t axis = 0; axis < kAxes; ++axis) {
      if (cut.factors[axis] == 0) continue;
      const Int factor = (*factors)[axis], here = factor / cut.factors[axis];
      if (here * cut.factors[axis] != factor || step.value_or(here) != here) return false;
      step = here;
    }
    for (size_t axis = 0; axis < kAxes; ++axis) {
      if (cut.factors[axis] != 0) (*factors)[axis] = 0;
    }
    AddSteps(*step, cut.low, cut.high);
    return true;
  }

  void AddSteps(Int step, Int first, Int last) {
    places_.begin += step < 0 ? step * last : step * first;
    if (step != 0 && first < last) places_.steps.push_back({Absolute(step), last - first + 1});
  }

  const AffineForms& forms_;
  std::vector<Cut> cuts_;
  GuardedPlaces places_;
};

}  // namespace

__int128 GuardedPlaces::last() const {
  Int last = begin;
  for (const Steps& each : steps) last += each.step * (each.count - 1);
  return last;
}

std::optional<GuardedPlaces> PlacesOf(const AffineForms& forms, TermIndex address,
                                      std::span<const Condition> conditions) {
  const std::optional<AffineForm> sum = forms.AsInteger(address, 64, false);
  if (!sum.has_value()) return std::nullopt;
  return Finder(forms).Run(*sum, conditions);
}

}  // namespace replay
