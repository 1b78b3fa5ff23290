// Which allocation an address is in, or was in last.
//
// An iteration that repeats frees memory and allocates memory at the same addresses again. The
// client then knows what a kernel touches from the last iteration, until another allocation comes
// there. Bounded. Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

#include "scheduler/streams/range.h"

namespace shim {

class KnownRanges {
 public:
  using Range = scheduler::streams::Range;

  // Something was allocated. False: as it was known already.
  bool Add(const Range& range) {
    if (const auto same = by_end_.find(range.end()); same != by_end_.end() && same->second == range)
      return false;
    if (by_end_.size() >= kRangesMax) by_end_.clear();
    for (auto at = by_end_.upper_bound(range.begin);
         at != by_end_.end() && at->second.begin < range.end();)
      at = by_end_.erase(at);
    by_end_[range.end()] = range;
    return true;
  }
  std::optional<Range> Find(uint64_t address) const {
    const auto at = by_end_.upper_bound(address);
    if (at == by_end_.end() || at->second.begin > address) return std::nullopt;
    return at->second;
  }

 private:
  static constexpr size_t kRangesMax = 1u << 16;

  std::map<uint64_t, Range> by_end_;  // they do not overlap
};

}  // namespace shim
