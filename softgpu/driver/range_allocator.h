// Hands out address ranges from one span: first fit over a sorted list of free ranges, neighbours
// merged on free. Knows addresses only; committing memory is the caller's.
//
// Thread safety: none; the owner locks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace softgpu {

class RangeAllocator {
 public:
  RangeAllocator(uint64_t base, uint64_t bytes) : base_(base), bytes_(bytes) {
    free_[base] = bytes;
  }

  // REQUIRES: align is a power of two, bytes > 0.
  std::optional<uint64_t> Allocate(uint64_t bytes, uint64_t align);
  // Takes exactly [address, address + bytes) when all of it is free.
  bool AllocateAt(uint64_t address, uint64_t bytes);
  // REQUIRES: the range was returned by Allocate or taken by AllocateAt.
  void Free(uint64_t address, uint64_t bytes);

  bool Empty() const { return free_.size() == 1 && free_.begin()->second == bytes_; }
  uint64_t base() const { return base_; }
  uint64_t bytes() const { return bytes_; }

 private:
  using Ranges = std::map<uint64_t, uint64_t>;  // base -> bytes
  void Take(Ranges::iterator range, uint64_t address, uint64_t bytes);

  const uint64_t base_, bytes_;
  Ranges free_;
};

}  // namespace softgpu
