#include "shim/arena/addresses.h"

#include <iterator>

namespace shim::arena {

std::optional<uint64_t> Addresses::Take(uint64_t bytes) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (std::map<uint64_t, uint64_t>::iterator it = free_.begin(); it != free_.end(); ++it) {
      if (it->second < bytes) continue;
      const uint64_t base = it->first;
      const uint64_t rest = it->second - bytes;
      free_.erase(it);
      if (rest != 0) free_[base + bytes] = rest;
      return base;
    }
    Merge();
  }
  return std::nullopt;
}

void Addresses::Give(Range range) { resting_.push_back(range); }

void Addresses::Merge() {
  for (const Range& range : resting_) {
    std::map<uint64_t, uint64_t>::iterator it = free_.emplace(range.base, range.bytes).first;
    const std::map<uint64_t, uint64_t>::iterator next = std::next(it);
    if (next != free_.end() && it->first + it->second == next->first) {
      it->second += next->second;
      free_.erase(next);
    }
    if (it == free_.begin()) continue;
    const std::map<uint64_t, uint64_t>::iterator before = std::prev(it);
    if (before->first + before->second != it->first) continue;
    before->second += it->second;
    free_.erase(it);
  }
  resting_.clear();
}

}  // namespace shim::arena
