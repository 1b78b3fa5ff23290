#include "softgpu/driver/range_allocator.h"

#include <cassert>
#include <iterator>

namespace softgpu {

std::optional<uint64_t> RangeAllocator::Allocate(uint64_t bytes, uint64_t align) {
  assert(bytes > 0 && (align & (align - 1)) == 0);
  for (Ranges::iterator it = free_.begin(); it != free_.end(); ++it) {
    const uint64_t address = (it->first + align - 1) & ~(align - 1);
    const uint64_t skipped = address - it->first;
    if (it->second < skipped || it->second - skipped < bytes) continue;
    Take(it, address, bytes);
    return address;
  }
  return std::nullopt;
}

bool RangeAllocator::AllocateAt(uint64_t address, uint64_t bytes) {
  Ranges::iterator it = free_.upper_bound(address);
  if (it == free_.begin()) return false;
  --it;
  const uint64_t offset = address - it->first;
  if (offset > it->second || it->second - offset < bytes) return false;
  Take(it, address, bytes);
  return true;
}

void RangeAllocator::Take(Ranges::iterator range, uint64_t address, uint64_t bytes) {
  const uint64_t begin = range->first, end = range->first + range->second;
  free_.erase(range);
  if (address > begin) free_[begin] = address - begin;
  if (address + bytes < end) free_[address + bytes] = end - (address + bytes);
}

void RangeAllocator::Free(uint64_t address, uint64_t bytes) {
  const Ranges::iterator it = free_.emplace(address, bytes).first;
  const Ranges::iterator next = std::next(it);
  if (next != free_.end() && address + bytes == next->first) {
    it->second += next->second;
    free_.erase(next);
  }
  if (it == free_.begin()) return;
  const Ranges::iterator previous = std::prev(it);
  if (previous->first + previous->second != it->first) return;
  previous->second += it->second;
  free_.erase(it);
}

}  // namespace softgpu
