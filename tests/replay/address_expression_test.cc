#include "replay/address_expression.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/harness/events.h"
#include "tests/harness/seed.h"

namespace replay {
namespace {

TEST(AddressExpressionTest, TheIndexOfAGrid) {
  Expressions e;
  const TermIndex block = e.Add({.term = Term::kBlock}),
                  threads = e.Add({.term = Term::kBlockThreads});
  const TermIndex product = e.Add({.term = Term::kMultiply, .left = block, .right = threads});
  const TermIndex thread = e.Add({.term = Term::kThread});
  const TermIndex index = e.Add({.term = Term::kAdd, .left = product, .right = thread});
  const std::vector<Interval> ranges = e.Ranges({.blocks = {10, 1, 1}, .threads = {32, 1, 1}}, {});
  EXPECT_EQ(ranges[index], (Interval{0, 319}));
}

TEST(AddressExpressionTest, AParameterThatIsNotThereIsUnbounded) {
  Expressions e;
  e.Add({.term = Term::kParameter, .bits = 64, .value = 8});
  EXPECT_FALSE(e.Ranges({}, std::vector<std::byte>(12))[0].bounded());
}

TEST(AddressExpressionTest, ANegativeNumberIsExtendedWithItsSign) {
  Expressions e;
  const TermIndex minus = e.Constant(0xFFFFFFFF, 32);
  const auto converted = [&](bool is_signed) {
    return e.Add({.term = Term::kConvert,
                  .bits = 64,
                  .source_bits = 32,
                  .is_signed = is_signed,
                  .left = minus});
  };
  const TermIndex with = converted(true), without = converted(false);
  const std::vector<Interval> ranges = e.Ranges({}, {});
  EXPECT_EQ(ranges[with], Interval::Of(-1));
  EXPECT_EQ(ranges[without], Interval::Of(0xFFFFFFFF));
}

// Brute force: each value that a random expression takes lies in its interval, modulo 2^bits.
class RandomExpression {
 public:
  explicit RandomExpression(uint64_t seed) : random_(seed) {
    for (int k = 0; k < 3; ++k) {
      grid_.blocks[k] = 1 + Below(3);
      grid_.threads[k] = 1 + Below(4);
    }
    for (auto& byte : parameters_) byte = std::byte(Below(4) == 0 ? random_() : 0);
    const int count = 3 + static_cast<int>(Below(12));
    for (int k = 0; k < count; ++k) AddAny();
  }

  // Empty when all is right.
  std::string Check() const {
    const std::vector<Interval> ranges = e_.Ranges(grid_, parameters_);
    uint32_t at[6] = {};
    std::string wrong;
    do {
      std::vector<uint64_t> values;
      for (const Expression& each : e_.all()) values.push_back(Value(each, values, at));
      for (size_t k = 0; k < values.size() && wrong.empty(); ++k) {
        if (!Holds(ranges[k], values[k], e_.all()[k].bits)) {
          wrong = "expression " + std::to_string(k) + " of term " +
                  std::to_string(static_cast<int>(e_.all()[k].term)) + " is " +
                  std::to_string(values[k]);
        }
      }
    } while (wrong.empty() && Next(at));
    return wrong;
  }

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }

  static bool Holds(const Interval& range, uint64_t value, uint8_t bits) {
    if (!range.bounded()) return true;
    const __int128 modulus = __int128{1} << bits;
    const __int128 distance = (((__int128{value} - range.low) % modulus) + modulus) % modulus;
    return distance <= range.high - range.low;
  }

  void AddAny() {
    const uint8_t bits = Below(2) == 0 ? 32 : 64;
    std::vector<TermIndex> same;
    for (TermIndex k = 0; k < e_.all().size(); ++k) {
      if (e_.all()[k].bits == bits) same.push_back(k);
    }
    if (same.size() < 2 || Below(4) == 0) return AddLeaf(bits);
    const auto any = [&] { return same[Below(same.size())]; };
    const Term term = static_cast<Term>(static_cast<int>(Term::kAdd) + Below(13));
    Expression next = {
        .term = term, .bits = bits, .source_bits = bits, .is_signed = Below(2) == 0, .left = any()};
    if (term == Term::kConvert) {
      next.bits = Below(2) == 0 ? 32 : 64;
    } else if (term == Term::kShiftLeft || term == Term::kShiftRight) {
      next.right = e_.Constant(static_cast<int64_t>(Below(20)), bits);
    } else {
      next.right = any();
      if (term == Term::kMultiply && bits == 32 && Below(2) == 0) next.bits = 64;
    }
    e_.Add(next);
  }

  void AddLeaf(uint8_t bits) {
    const int64_t axis = static_cast<int64_t>(Below(3));
    const Term leaves[] = {Term::kThread, Term::kBlock, Term::kBlockThreads, Term::kGridBlocks};
    if (Below(3) == 0) {
      const int64_t value = static_cast<int64_t>(Below(3) == 0 ? random_() : Below(100));
      e_.Constant(bits == 32 ? static_cast<uint32_t>(value) : value, bits);
    } else if (Below(3) == 0) {
      e_.Add({.term = Term::kParameter, .bits = bits, .value = static_cast<int64_t>(8 * Below(3))});
    } else {
      e_.Add({.term = leaves[Below(4)], .bits = bits, .value = axis});
    }
  }

  // The next thread of the grid; false after the last one.
  bool Next(uint32_t at[6]) const {
    for (int k = 0; k < 6; ++k) {
      if (++at[k] < (k < 3 ? grid_.threads[k] : grid_.blocks[k - 3])) return true;
      at[k] = 0;
    }
    return false;
  }

  static int64_t Signed(uint64_t value, uint8_t bits) {
    return bits == 32 ? static_cast<int32_t>(value) : static_cast<int64_t>(value);
  }

  // As a device computes it.
  uint64_t Value(const Expression& e, const std::vector<uint64_t>& values,
                 const uint32_t at[6]) const {
    const uint64_t mask = e.bits == 32 ? 0xFFFFFFFFu : ~0ull;
    switch (e.term) {
      case Term::kConstant:
        return static_cast<uint64_t>(e.value) & mask;
      case Term::kParameter: {
        uint64_t value = 0;
        std::memcpy(&value, parameters_ + e.value, e.bits / 8);
        return value;
      }
      case Term::kThread:
        return at[e.value];
      case Term::kBlock:
        return at[3 + e.value];
      case Term::kBlockThreads:
        return grid_.threads[e.value];
      case Term::kGridBlocks:
        return grid_.blocks[e.value];
      case Term::kConvert:
        return (e.is_signed ? static_cast<uint64_t>(Signed(values[e.left], e.source_bits))
                            : values[e.left]) &
               mask;
      default:
        return Two(e, values[e.left], values[e.right], at) & mask;
    }
  }

  static uint64_t Two(const Expression& e, uint64_t a, uint64_t b, const uint32_t at[6]) {
    const bool s = e.is_signed;
    const int64_t sa = Signed(a, e.source_bits), sb = Signed(b, e.source_bits);
    const bool overflows = s && sb == -1 && sa == INT64_MIN;
    switch (e.term) {
      case Term::kAdd:
        return a + b;
      case Term::kSubtract:
        return a - b;
      case Term::kMultiply:
        return s ? static_cast<uint64_t>(sa) * static_cast<uint64_t>(sb) : a * b;
      case Term::kShiftLeft:
        return a << b;
      case Term::kShiftRight:
        return s ? static_cast<uint64_t>(sa >> b) : a >> b;
      case Term::kDivide:
        return b == 0 || overflows ? a : s ? static_cast<uint64_t>(sa / sb) : a / b;
      case Term::kRemainder:
        return b == 0 || overflows ? 0 : s ? static_cast<uint64_t>(sa % sb) : a % b;
      case Term::kAnd:
        return a & b;
      case Term::kMinimum:
        return s ? (sa < sb ? a : b) : std::min(a, b);
      case Term::kMaximum:
        return s ? (sa < sb ? b : a) : std::max(a, b);
      default:  // kEither
        return (at[0] + at[3]) % 2 == 0 ? a : b;
    }
  }

  std::mt19937_64 random_;
  Grid grid_;
  std::byte parameters_[24] = {};
  Expressions e_;
};

TEST(AddressExpressionTest, IntervalsHoldAllThatThreadsCompute) {
  const uint64_t seed = harness::Seed();
  for (uint64_t k = 0; k < (harness::kSanitized ? 2'000 : 20'000); ++k) {
    const std::string wrong = RandomExpression(seed + k).Check();
    ASSERT_EQ(wrong, "") << "seed " << seed + k;
  }
}

}  // namespace
}  // namespace replay
