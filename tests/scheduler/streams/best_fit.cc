#include "tests/scheduler/streams/best_fit.h"

#include <iterator>
#include <optional>

namespace scheduler::streams {
namespace {

constexpr uint64_t kAlignment = 256;  // cuMemAlloc's

}  // namespace

Range BestFit::Allocate(uint64_t bytes) {
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  std::map<uint64_t, uint64_t>::iterator best = free_.end();
  for (std::map<uint64_t, uint64_t>::iterator each = free_.begin(); each != free_.end(); ++each) {
    if (each->second < bytes) continue;
    if (best == free_.end() || each->second < best->second) best = each;
  }
  if (best == free_.end()) {
    arena_bytes_ += bytes;
    return {arena_bytes_ - bytes, bytes};
  }
  const Range found = {best->first, bytes};
  const uint64_t rest = best->second - bytes;
  free_.erase(best);
  if (rest > 0) free_.emplace(found.end(), rest);
  return found;
}

void BestFit::Free(const Range& range) {
  if (!freed_.Add(range, range.bytes)) return Release(range);
  while (const std::optional<Range> oldest = freed_.TakeOver()) Release(*oldest);
}

void BestFit::Release(Range range) {
  std::map<uint64_t, uint64_t>::iterator next = free_.lower_bound(range.begin);
  if (next != free_.end() && next->first == range.end()) {
    range.bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin() && std::prev(next)->first + std::prev(next)->second == range.begin) {
    std::prev(next)->second += range.bytes;
    return;
  }
  free_.emplace(range.begin, range.bytes);
}

}  // namespace scheduler::streams
