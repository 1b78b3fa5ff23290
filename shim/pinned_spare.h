// Pinned ranges that the program has freed, kept for its next allocation of that size.
//
// A program that allocates pinned memory for every copy would otherwise pay two round trips, and
// the pages, each time. Kept are small ranges, and few of them: pinned memory is the machine's.
// They stay mapped and registered on both sides. Thread safety: all methods.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "shim/lock_order.h"

namespace shim {

class PinnedSpare {
 public:
  struct Range {
    uint64_t address = 0;
    size_t bytes = 0;  // whole pages
  };
  static constexpr size_t kRangeBytesMax = 1u << 20;
  static constexpr size_t kRangesMax = 32;

  static PinnedSpare& Process();

  // A kept range of just this size, zeroed; false: there is none.
  bool Take(size_t bytes, uint64_t* address);
  // Returns the range that the caller is to free instead: `range` itself when it is large, or the
  // range kept longest when too many are kept. REQUIRES: no work on the device uses `range`.
  std::vector<Range> Keep(const Range& range);
  // Keeps none any longer: returns all.
  std::vector<Range> Clear();

 private:
  base::Mutex mutex_ ACQUIRED_AFTER(lock_order::kKeeping);
  std::vector<Range> ranges_ GUARDED_BY(mutex_);  // the one kept longest first
};

}  // namespace shim
