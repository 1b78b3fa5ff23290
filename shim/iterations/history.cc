#include "shim/iterations/history.h"

#include <algorithm>
#include <cassert>

namespace shim::iterations {
namespace {

uint64_t Power(uint64_t base, uint64_t exponent) {
  uint64_t power = 1;
  for (; exponent != 0; exponent >>= 1, base *= base) {
    if ((exponent & 1) != 0) power *= base;
  }
  return power;
}

}  // namespace

History::History() : ring_(std::make_unique_for_overwrite<Entry[]>(kSize)) {}

uint64_t History::Hash(uint64_t begin, uint64_t count) const {
  assert(begin + count <= size_ && (begin == 0 || begin > first()));
  if (count == 0) return 0;
  const uint64_t before = begin == 0 ? 0 : At(begin - 1).hash;
  return At(begin + count - 1).hash - before * Power(kFactor, count);
}

uint64_t History::EqualBefore(uint64_t end, uint64_t period, uint64_t count) const {
  assert(end <= size_ && period <= end);
  const uint64_t oldest = first() == 0 ? 0 : first() + 1;
  const uint64_t room = end - period > oldest ? end - period - oldest : 0;
  uint64_t equal = 0, unequal = std::min(count, room) + 1;  // the answer is in [equal, unequal)
  // Where the operations do not repeat only a few are equal, so the first kFew are compared one by
  // one. A longer equal stretch is found by hashes: its length grows by four each time, then
  // it is bisected.
  constexpr uint64_t kFew = 16;
  while (equal < kFew && equal + 1 < unequal) {
    if (identity(end - 1 - equal) != identity(end - 1 - equal - period)) return equal;
    ++equal;
  }
  for (uint64_t more = 4 * kFew; more < unequal; more *= 4) {
    const bool same = Hash(end - more, more) == Hash(end - period - more, more);
    (same ? equal : unequal) = more;
  }
  while (unequal - equal > 1) {
    const uint64_t middle = equal + (unequal - equal) / 2;
    const bool same = Hash(end - middle, middle) == Hash(end - period - middle, middle);
    (same ? equal : unequal) = middle;
  }
  return equal;
}

}  // namespace shim::iterations
