#include "shim/pinned_spare.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace shim {

PinnedSpare& PinnedSpare::Process() {
  static PinnedSpare* const spare = new PinnedSpare;
  return *spare;
}

bool PinnedSpare::Take(size_t bytes, uint64_t* address) {
  {
    const base::MutexLock lock(&mutex_);
    // The last one first: the processor still knows it.
    const std::vector<Range>::reverse_iterator found =
        std::find_if(ranges_.rbegin(), ranges_.rend(),
                     [bytes](const Range& range) { return range.bytes == bytes; });
    if (found == ranges_.rend()) return false;
    *address = found->address;
    ranges_.erase(std::next(found).base());
  }
  std::memset(reinterpret_cast<void*>(*address), 0, bytes);
  return true;
}

std::vector<PinnedSpare::Range> PinnedSpare::Keep(const Range& range) {
  if (range.bytes > kRangeBytesMax) return {range};
  const base::MutexLock lock(&mutex_);
  ranges_.push_back(range);
  if (ranges_.size() <= kRangesMax) return {};
  const Range oldest = ranges_.front();
  ranges_.erase(ranges_.begin());
  return {oldest};
}

std::vector<PinnedSpare::Range> PinnedSpare::Clear() {
  const base::MutexLock lock(&mutex_);
  return std::exchange(ranges_, {});
}

}  // namespace shim
