// The addresses of the persistent part, in steps of an extent: which are given to ranges.
//
// What was given back is given out again last, so that an address whose old memory the worker is
// still about to unmap is seldom asked for. Thread safety: none; the owner locks.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "shim/arena/blocks.h"

namespace shim::arena {

class Addresses {
 public:
  Addresses(uint64_t base, uint64_t bytes) { free_[base] = bytes; }

  // `bytes` in one piece; nothing when there is none.
  std::optional<uint64_t> Take(uint64_t bytes);
  void Give(Range range);

 private:
  std::map<uint64_t, uint64_t> free_;  // never given out since they were merged, by address
  std::deque<Range> resting_;
  void Merge();
};

}  // namespace shim::arena
