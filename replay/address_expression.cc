#include "replay/address_expression.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace replay {
namespace {

using Wide = __int128;

const Interval kUnbounded;

Wide Modulus(uint8_t bits) { return Wide{1} << bits; }

// Moves an interval to where its integers fit the type: signed where they can be, so that bounds
// stay small. An interval as long as the modulus tells nothing.
Interval Bounded(const Interval& range, uint8_t bits) {
  if (!range.bounded() || range.high - range.low >= Modulus(bits)) return kUnbounded;
  const Interval as_signed = AsInteger(range, bits, true);
  return as_signed.bounded() ? as_signed : AsInteger(range, bits, false);
}

Interval Product(const Interval& a, const Interval& b) {
  constexpr Wide kFactorMax = Wide{1} << 62;  // their product still fits
  if (std::max({-a.low, a.high, -b.low, b.high}) > kFactorMax) return kUnbounded;
  const Wide corners[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
  return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4)};
}

// Truncates towards zero, as PTX does.
Interval Quotient(const Interval& a, const Interval& b) {
  if (b.low <= 0) return kUnbounded;
  const Wide corners[] = {a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high};
  return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4)};
}

// Of a negative number the remainder is negative: such a dividend is left out.
Interval Remainder(const Interval& a, const Interval& b) {
  if (a.low < 0 || b.low <= 0) return kUnbounded;
  if (a.high < b.low) return a;
  return {0, std::min(a.high, b.high - 1)};
}

Interval ShiftedRight(const Interval& a, const Interval& b) {
  if (b.low != b.high || b.low < 0 || b.low >= 64) return kUnbounded;
  return {a.low >> b.low, a.high >> b.low};
}

Interval ShiftedLeft(const Interval& a, const Interval& b) {
  if (b.low != b.high || b.low < 0 || b.low >= 32) return kUnbounded;
  return {a.low * (Wide{1} << b.low), a.high * (Wide{1} << b.low)};
}

// Of two numbers that are not negative the smaller bounds their common bits.
Interval Common(const Interval& a, const Interval& b) {
  if (a.low < 0 && b.low < 0) return kUnbounded;
  if (a.low < 0) return {0, b.high};
  if (b.low < 0) return {0, a.high};
  return {0, std::min(a.high, b.high)};
}

// A parameter that the launch did not pass is unbounded, though no kernel reads one.
Interval ReadParameter(const Expression& e, std::span<const std::byte> parameters) {
  const size_t bytes = e.bits / 8, offset = static_cast<size_t>(e.value);
  if (offset + bytes > parameters.size()) return kUnbounded;
  uint64_t value = 0;
  std::memcpy(&value, parameters.data() + offset, bytes);
  return Interval::Of(value);
}

Interval Operation(const Expression& e, const Interval& left, const Interval& right) {
  // Sums and products of residues need no sign; the rest reads its operands as integers.
  if (e.term == Term::kAdd) return {left.low + right.low, left.high + right.high};
  if (e.term == Term::kSubtract) return {left.low - right.high, left.high - right.low};
  const bool widens = e.source_bits < e.bits;
  if (e.term == Term::kMultiply && !widens) return Product(left, right);
  if (e.term == Term::kShiftLeft) return ShiftedLeft(left, right);
  const uint8_t bits = widens ? e.source_bits : e.bits;
  const Interval a = AsInteger(left, bits, e.is_signed), b = AsInteger(right, bits, e.is_signed);
  if (!a.bounded() || !b.bounded()) return kUnbounded;
  switch (e.term) {
    case Term::kMultiply:
      return Product(a, b);
    case Term::kDivide:
      return Quotient(a, b);
    case Term::kRemainder:
      return Remainder(a, b);
    case Term::kShiftRight:
      return ShiftedRight(a, b);
    case Term::kAnd:
      return Common(a, b);
    case Term::kMinimum:
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case Term::kMaximum:
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case Term::kEither:
      return {std::min(a.low, b.low), std::max(a.high, b.high)};
    default:
      return kUnbounded;
  }
}

Interval Leaf(const Expression& e, const Grid& grid, std::span<const std::byte> parameters) {
  switch (e.term) {
    case Term::kConstant:
      return Interval::Of(e.value);
    case Term::kParameter:
      return ReadParameter(e, parameters);
    case Term::kThread:
      return {0, Wide{grid.threads[e.value]} - 1};
    case Term::kBlock:
      return {0, Wide{grid.blocks[e.value]} - 1};
    case Term::kBlockThreads:
      return Interval::Of(grid.threads[e.value]);
    case Term::kGridBlocks:
      return Interval::Of(grid.blocks[e.value]);
    default:
      return kUnbounded;
  }
}

const char* OperatorOf(Term term) {
  switch (term) {
    case Term::kAdd:
      return " + ";
    case Term::kSubtract:
      return " - ";
    case Term::kMultiply:
      return " * ";
    case Term::kShiftLeft:
      return " << ";
    case Term::kShiftRight:
      return " >> ";
    case Term::kDivide:
      return " / ";
    case Term::kRemainder:
      return " % ";
    case Term::kAnd:
      return " & ";
    case Term::kMinimum:
      return " min ";
    case Term::kMaximum:
      return " max ";
    default:
      return " or ";
  }
}

std::string LeafText(const Expression& e) {
  const std::string axis = {'.', "xyz"[e.value % 3]};
  switch (e.term) {
    case Term::kConstant:
      return std::to_string(e.bits == 32 ? static_cast<int32_t>(e.value) : e.value);
    case Term::kParameter:
      return "p" + std::to_string(e.value);
    case Term::kThread:
      return "tid" + axis;
    case Term::kBlock:
      return "ctaid" + axis;
    case Term::kBlockThreads:
      return "ntid" + axis;
    case Term::kGridBlocks:
      return "nctaid" + axis;
    default:
      return "?";
  }
}

constexpr size_t kTextMax = 200;  // of an expression: beyond, people read no more

}  // namespace

Interval AsInteger(const Interval& range, uint8_t bits, bool is_signed) {
  if (!range.bounded()) return kUnbounded;
  const Wide modulus = Modulus(bits);
  const Wide smallest = is_signed ? -(modulus / 2) : 0;
  // How many times the modulus lies between the least value and this interval.
  Wide turns = (range.low - smallest) / modulus;
  if (range.low < smallest && (range.low - smallest) % modulus != 0) --turns;
  const Interval moved = {range.low - turns * modulus, range.high - turns * modulus};
  return moved.high < smallest + modulus ? moved : kUnbounded;
}

TermIndex Expressions::Add(const Expression& expression) {
  const auto differs = [this](TermIndex operand) {
    return operand != kNoTerm && differs_by_thread_[operand];
  };
  differs_by_thread_.push_back(expression.term == Term::kThread ||
                               expression.term == Term::kBlock || differs(expression.left) ||
                               differs(expression.right));
  all_.push_back(expression);
  return static_cast<TermIndex>(all_.size() - 1);
}

// Without recursion: expressions come from text that may be deep.
void Expressions::Mark(TermIndex term, std::vector<bool>* marked) const {
  std::vector<TermIndex> rest = {term};
  while (!rest.empty()) {
    const TermIndex next = rest.back();
    rest.pop_back();
    if (next == kNoTerm || (*marked)[next]) continue;
    (*marked)[next] = true;
    rest.push_back(all_[next].left);
    rest.push_back(all_[next].right);
  }
}

TermIndex Expressions::Constant(int64_t value, uint8_t bits) {
  return Add({.term = Term::kConstant, .bits = bits, .value = value});
}

// Operands come before what uses them, so each text is made once.
std::vector<std::string> Expressions::Texts() const {
  std::vector<std::string> texts;
  for (const Expression& e : all_) texts.push_back(TextOf(e, texts));
  return texts;
}

std::string Expressions::TextOf(const Expression& e, const std::vector<std::string>& texts) const {
  if (e.left == kNoTerm) return LeafText(e);
  if (e.term == Term::kConvert) return texts[e.left];
  // A sum needs no brackets within a sum, nor does a product; all else gets them.
  const auto operand = [&](TermIndex side) {
    while (all_[side].term == Term::kConvert) side = all_[side].left;
    const Expression& inner = all_[side];
    const bool plain = inner.left == kNoTerm ||
                       (e.term == Term::kAdd && (inner.term == Term::kAdd || IsProduct(inner)));
    return plain ? texts[side] : "(" + texts[side] + ")";
  };
  const std::string right = e.term == Term::kShiftLeft && IsProduct(e)
                                ? " * " + std::to_string(int64_t{1} << all_[e.right].value)
                                : OperatorOf(e.term) + operand(e.right);
  const std::string text = operand(e.left) + right;
  return text.size() <= kTextMax ? text : "...";
}

// Shifts by a constant are shown as the products that they were in the program.
bool Expressions::IsProduct(const Expression& e) const {
  if (e.term == Term::kMultiply) return true;
  return e.term == Term::kShiftLeft && all_[e.right].term == Term::kConstant &&
         all_[e.right].value >= 0 && all_[e.right].value < 63;
}

std::vector<Interval> Expressions::Ranges(const Grid& grid,
                                          std::span<const std::byte> parameters) const {
  std::vector<Interval> ranges(all_.size());
  for (size_t i = 0; i < all_.size(); ++i) {
    const Expression& e = all_[i];
    if (e.left == kNoTerm) {
      ranges[i] = Bounded(Leaf(e, grid, parameters), e.bits);
      continue;
    }
    const Interval& left = ranges[e.left];
    if (!left.bounded()) continue;
    if (e.term == Term::kConvert) {
      ranges[i] = Bounded(AsInteger(left, e.source_bits, e.is_signed), e.bits);
      continue;
    }
    const Interval& right = ranges[e.right];
    if (right.bounded()) ranges[i] = Bounded(Operation(e, left, right), e.bits);
  }
  return ranges;
}

}  // namespace replay
