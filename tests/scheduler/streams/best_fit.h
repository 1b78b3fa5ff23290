// An allocator in one arena: the smallest free range that is large enough, of several the lowest;
// the arena grows when there is none. Freed ranges wait in a FreedQueue first.
#pragma once

#include <cstdint>
#include <map>

#include "scheduler/streams/range.h"
#include "shim/arena/freed_queue.h"

namespace scheduler::streams {

class BestFit {
 public:
  explicit BestFit(uint64_t kept_bytes) { freed_.SetBytesMax(kept_bytes); }

  Range Allocate(uint64_t bytes);
  void Free(const Range& range);
  uint64_t arena_bytes() const { return arena_bytes_; }

 private:
  void Release(Range range);

  shim::arena::FreedQueue<Range> freed_;
  std::map<uint64_t, uint64_t> free_;  // bytes by begin; no two touch
  uint64_t arena_bytes_ = 0;
};

}  // namespace scheduler::streams
