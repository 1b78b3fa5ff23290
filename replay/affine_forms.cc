#include "replay/affine_forms.h"

#include <algorithm>

namespace replay {
namespace {

// Beyond, a product or a sum might not fit into 128 bits.
constexpr __int128 kPartMax = __int128{1} << 62;

bool Fits(__int128 part) { return -kPartMax <= part && part <= kPartMax; }

bool Fits(const AffineForm& form) {
  return Fits(form.constant) && std::all_of(form.factors.begin(), form.factors.end(),
                                            [](__int128 factor) { return Fits(factor); });
}

// left + right * times
AffineForm Sum(const AffineForm& left, const AffineForm& right, __int128 times) {
  AffineForm sum{.constant = left.constant + right.constant * times};
  for (size_t axis = 0; axis < kAxes; ++axis)
    sum.factors[axis] = left.factors[axis] + right.factors[axis] * times;
  return sum;
}

}  // namespace

AffineForms::AffineForms(const Expressions& expressions, const Grid& grid,
                         std::span<const Interval> ranges)
    : expressions_(expressions) {
  for (size_t axis = 0; axis < 3; ++axis) {
    counts_[axis] = grid.threads[axis];
    counts_[axis + 3] = grid.blocks[axis];
  }
  for (size_t i = 0; i < ranges.size(); ++i) {
    Maybe form = FormOf(expressions.all()[i], ranges[i]);
    if (form.has_value() && !Fits(*form)) form.reset();
    forms_.push_back(form);
  }
}

std::optional<AffineForm> AffineForms::AsInteger(TermIndex term, uint8_t bits,
                                                 bool is_signed) const {
  return Representative(forms_[term], bits, is_signed);
}

Interval AffineForms::BoundsOf(const AffineForm& form) const {
  Interval bounds = Interval::Of(form.constant);
  for (size_t axis = 0; axis < kAxes; ++axis) {
    const __int128 last = form.factors[axis] * (counts_[axis] - 1);
    (last < 0 ? bounds.low : bounds.high) += last;
  }
  return bounds;
}

AffineForms::Maybe AffineForms::Representative(const Maybe& form, uint8_t bits,
                                               bool is_signed) const {
  if (!form.has_value()) return std::nullopt;
  const Interval bounds = BoundsOf(*form);
  const Interval moved = replay::AsInteger(bounds, bits, is_signed);
  if (!moved.bounded()) return std::nullopt;
  AffineForm result = *form;
  result.constant += moved.low - bounds.low;
  return result;
}

// An expression with a single value is a constant.
AffineForms::Maybe AffineForms::FormOf(const Expression& e, const Interval& range) const {
  if (range.bounded() && range.low == range.high) {
    const AffineForm constant{.constant = range.low};
    const Maybe small = Representative(constant, e.bits, true);
    return small.has_value() ? small : constant;
  }
  AffineForm axis;
  switch (e.term) {
    case Term::kThread:
      axis.factors[static_cast<size_t>(e.value)] = 1;
      return axis;
    case Term::kBlock:
      axis.factors[static_cast<size_t>(e.value) + 3] = 1;
      return axis;
    default:
      return e.left == kNoTerm ? std::nullopt : OperationOf(e);
  }
}

AffineForms::Maybe AffineForms::OperationOf(const Expression& e) const {
  const Maybe& left = forms_[e.left];
  if (e.term == Term::kConvert)
    return e.bits > e.source_bits ? Representative(left, e.source_bits, e.is_signed) : left;
  const Maybe& right = forms_[e.right];
  if (!left.has_value() || !right.has_value()) return std::nullopt;
  switch (e.term) {
    case Term::kAdd:
      return Sum(*left, *right, 1);
    case Term::kSubtract:
      return Sum(*left, *right, -1);
    case Term::kMultiply:
      if (e.source_bits == e.bits) return ProductOf(left, right);
      return ProductOf(Representative(left, e.source_bits, e.is_signed),
                       Representative(right, e.source_bits, e.is_signed));
    case Term::kShiftLeft: {
      const __int128 shift = right->constant;
      if (!right->IsConstant() || shift < 0 || shift >= 32) return std::nullopt;
      return ProductOf(left, AffineForm{.constant = __int128{1} << static_cast<int>(shift)});
    }
    default:
      return std::nullopt;
  }
}

AffineForms::Maybe AffineForms::ProductOf(const Maybe& left, const Maybe& right) const {
  if (!left.has_value() || !right.has_value()) return std::nullopt;
  if (right->IsConstant()) return Sum({}, *left, right->constant);
  if (left->IsConstant()) return Sum({}, *right, left->constant);
  return std::nullopt;
}

}  // namespace replay
