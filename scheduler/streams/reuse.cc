#include "scheduler/streams/reuse.h"

namespace scheduler::streams {

void FreedQueue::Free(const Range& range) {
  if (range.bytes == 0) return;
  ranges_.push_back(range);
  bytes_ += range.bytes;
}

std::optional<Range> FreedQueue::Take() {
  return bytes_ > kept_bytes_ ? TakeEarly() : std::nullopt;
}

std::optional<Range> FreedQueue::TakeEarly() {
  if (ranges_.empty()) return std::nullopt;
  const Range oldest = ranges_.front();
  ranges_.pop_front();
  bytes_ -= oldest.bytes;
  return oldest;
}

std::vector<Range> FreedQueue::TakeAtBoundary() {
  const std::vector<Range> all(ranges_.begin(), ranges_.end());
  ranges_.clear();
  bytes_ = 0;
  return all;
}

}  // namespace scheduler::streams
