#include "shim/spare_pinned.h"

#include <algorithm>
#include <cstring>

namespace shim {

using arena::Range;

SparePinned& SparePinned::Process() {
  static SparePinned* const spare = new SparePinned;
  return *spare;
}

bool SparePinned::Take(size_t bytes, uint64_t* address) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::deque<Range>::iterator found =
        std::find_if(ranges_.begin(), ranges_.end(),
                     [bytes](const Range& range) { return range.bytes == bytes; });
    if (found == ranges_.end()) return false;
    *address = found->base;
    bytes_ -= bytes;
    ranges_.erase(found);
  }
  std::memset(reinterpret_cast<void*>(*address), 0, bytes);
  return true;
}

void SparePinned::Keep(Range range, std::vector<Range>* freed) {
  if (range.bytes > kBytesMax) return freed->push_back(range);
  const std::lock_guard<std::mutex> lock(mutex_);
  ranges_.push_back(range);
  for (bytes_ += range.bytes; bytes_ > kBytesMax; ranges_.pop_front()) {
    bytes_ -= ranges_.front().bytes;
    freed->push_back(ranges_.front());
  }
}

std::vector<Range> SparePinned::TakeAll() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Range> all(ranges_.begin(), ranges_.end());
  ranges_.clear();
  bytes_ = 0;
  return all;
}

}  // namespace shim
