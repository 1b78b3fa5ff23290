// Freed ranges that wait before an allocator may use them again.
//
// Two branches of an iteration that write the same range in turn become ordered, although neither
// branch needs the other: memory used again at once leaves almost no concurrency. So freed ranges
// queue, first in, first out, by bytes. A few MiB are enough for small networks; the price is that
// much more memory.
//
// The order depends on calls alone, and the queue is empty after each boundary: an iteration that
// repeats the calls of the last iteration gets the same addresses. Thread safety: none.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "scheduler/streams/range.h"

namespace scheduler::streams {

class FreedQueue {
 public:
  explicit FreedQueue(uint64_t kept_bytes) : kept_bytes_(kept_bytes) {}

  uint64_t bytes() const { return bytes_; }
  // A range that the program has freed.
  void Free(const Range& range);
  // The oldest range, for the allocator to use again; nullopt while at most `kept_bytes` wait. The
  // allocator calls Take after each Free until nullopt.
  std::optional<Range> Take();
  // The oldest range however few bytes wait, for an allocation that finds no other room; nullopt
  // when none waits.
  std::optional<Range> TakeEarly();
  // All ranges, the oldest first: nothing waits past the end of an iteration.
  std::vector<Range> TakeAtBoundary();

 private:
  const uint64_t kept_bytes_;
  uint64_t bytes_ = 0;
  std::deque<Range> ranges_;  // the oldest first
};

}  // namespace scheduler::streams
