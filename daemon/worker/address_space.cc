#include "daemon/worker/address_space.h"

#include <cassert>
#include <iterator>

namespace worker {

AddressSpace::AddressSpace(uint64_t base, uint64_t bytes) : free_bytes_(bytes) {
  if (bytes != 0) free_[base] = bytes;
}

std::optional<uint64_t> AddressSpace::Take(uint64_t bytes, uint64_t alignment) {
  assert(bytes != 0 && (alignment & (alignment - 1)) == 0);
  for (std::map<uint64_t, uint64_t>::iterator it = free_.begin(); it != free_.end(); ++it) {
    const uint64_t start = (it->first + alignment - 1) & ~(alignment - 1);
    const uint64_t skipped = start - it->first;
    if (it->second < skipped || it->second - skipped < bytes) continue;
    const uint64_t end = it->first + it->second;
    if (skipped == 0) {
      free_.erase(it);
    } else {
      it->second = skipped;
    }
    if (start + bytes != end) free_[start + bytes] = end - (start + bytes);
    free_bytes_ -= bytes;
    return start;
  }
  return std::nullopt;
}

void AddressSpace::Give(uint64_t address, uint64_t bytes) {
  std::map<uint64_t, uint64_t>::iterator next = free_.lower_bound(address);
  assert(next == free_.end() || address + bytes <= next->first);
  free_bytes_ += bytes;
  if (next != free_.begin()) {
    const std::map<uint64_t, uint64_t>::iterator before = std::prev(next);
    assert(before->first + before->second <= address);
    if (before->first + before->second == address) {
      address = before->first;
      bytes += before->second;
      free_.erase(before);
    }
  }
  if (next != free_.end() && next->first == address + bytes) {
    bytes += next->second;
    free_.erase(next);
  }
  free_[address] = bytes;
}

}  // namespace worker
