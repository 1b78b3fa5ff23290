// Addresses as expressions over a launch: which interval an index runs through once the grid and
// the parameters are known.
//
// The analysis (kernel_access.h) makes an expression of each value that a kernel computes in one
// place from its parameters, the numbers of block and thread, and constants. Ranges() evaluates all
// of them for one launch by interval arithmetic. Integers of PTX wrap around, so an interval stands
// for its residues modulo 2^bits. An operation that depends on the sign takes the representative
// that fits the type; without one the result is unbounded. Thread safety: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace replay {

struct Grid {
  uint32_t blocks[3] = {1, 1, 1};
  uint32_t threads[3] = {1, 1, 1};  // of a block
};

// All integers from low to high. Unbounded when nothing is known.
struct Interval {
  __int128 low = 0, high = -1;
  bool bounded() const { return low <= high; }
  static Interval Of(__int128 value) { return {value, value}; }
  bool operator==(const Interval&) const = default;
};

enum class Term : uint8_t {
  kUnknown,
  kConstant,      // value
  kParameter,     // value: offset in bytes among the parameters; `bits` of it
  kThread,        // value: 0, 1, 2 for x, y, z: 0 .. threads - 1
  kBlock,         // 0 .. blocks - 1
  kBlockThreads,  // threads of a block
  kGridBlocks,    // blocks
  kAdd,
  kSubtract,
  kMultiply,
  kShiftLeft,
  kShiftRight,
  kDivide,
  kRemainder,
  kAnd,
  kMinimum,
  kMaximum,
  kEither,   // one of the two
  kConvert,  // the operand's `source_bits` as an integer of more or fewer bits
};

using TermIndex = uint32_t;
inline constexpr TermIndex kNoTerm = ~0u;

struct Expression {
  Term term = Term::kUnknown;
  uint8_t bits = 32;         // of the result
  uint8_t source_bits = 32;  // kConvert
  bool is_signed = false;    // how the operands are read, where that matters
  TermIndex left = kNoTerm, right = kNoTerm;
  int64_t value = 0;
};

// left < right, or left <= right, as integers of so many bits.
struct Condition {
  TermIndex left = kNoTerm, right = kNoTerm;
  bool or_equal = false;
  bool is_signed = false;
  uint8_t bits = 32;
  bool operator==(const Condition&) const = default;
};

// The interval as integers of this many bits, signed or not. Unbounded when it wraps around there.
Interval AsInteger(const Interval& range, uint8_t bits, bool is_signed);

// Operands come before what uses them, so that one pass evaluates all.
class Expressions {
 public:
  // The number of the expression.
  TermIndex Add(const Expression& expression);
  TermIndex Constant(int64_t value, uint8_t bits);
  const std::vector<Expression>& all() const { return all_; }
  // A number of thread or block is a part of it.
  bool DiffersByThread(TermIndex term) const { return differs_by_thread_[term]; }
  // Marks the expression and all that it is made of. `marked`: one for each of all().
  void Mark(TermIndex term, std::vector<bool>* marked) const;
  // Each expression for people: "p0 + (ctaid.x * ntid.x + tid.x) * 4"; p0 are the bytes of the
  // parameters from 0. A part that is too long is "...".
  std::vector<std::string> Texts() const;

  // The interval of each expression for a launch with these parameters; unbounded where a parameter
  // lies beyond the end of `parameters`.
  std::vector<Interval> Ranges(const Grid& grid, std::span<const std::byte> parameters) const;

 private:
  bool IsProduct(const Expression& expression) const;
  // `texts`: of all expressions before this one.
  std::string TextOf(const Expression& expression, const std::vector<std::string>& texts) const;

  std::vector<Expression> all_;
  std::vector<bool> differs_by_thread_;  // by expression
};

}  // namespace replay
