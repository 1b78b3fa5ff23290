// Expressions (address_expression.h) of one launch as sums: a constant, and for each of the six
// numbers of thread and block a factor.
//
// An interval says between which bounds a value lies; a sum says which values it takes. Sums are
// exact but for multiples of 2^bits, as integers of PTX are. Internal to replay/. Thread safety:
// values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "replay/address_expression.h"

namespace replay {

inline constexpr size_t kAxes = 6;  // x, y, z of the thread, then of the block

struct AffineForm {
  __int128 constant = 0;
  std::array<__int128, kAxes> factors{};
  bool IsConstant() const { return factors == std::array<__int128, kAxes>{}; }
};

class AffineForms {
 public:
  // `ranges`: Expressions::Ranges() of the launch.
  AffineForms(const Expressions& expressions, const Grid& grid, std::span<const Interval> ranges);

  // The expression as an integer of so many bits. Nothing: it is no such sum, or it wraps around.
  std::optional<AffineForm> AsInteger(TermIndex term, uint8_t bits, bool is_signed) const;
  // The bounds of a sum; both are reached.
  Interval BoundsOf(const AffineForm& form) const;
  // How many numbers there are along an axis, from 0 on.
  __int128 count(size_t axis) const { return counts_[axis]; }

 private:
  using Maybe = std::optional<AffineForm>;

  Maybe Representative(const Maybe& form, uint8_t bits, bool is_signed) const;
  Maybe FormOf(const Expression& expression, const Interval& range) const;
  Maybe OperationOf(const Expression& expression) const;
  Maybe ProductOf(const Maybe& left, const Maybe& right) const;

  const Expressions& expressions_;
  std::array<__int128, kAxes> counts_;
  std::vector<Maybe> forms_;  // by expression
};

}  // namespace replay
