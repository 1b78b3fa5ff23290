// What is live, kept the plain way: the oracle of the allocators' property tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <map>

#include "shim/arena/blocks.h"

namespace shim_arena_test {

template <class Value>
class Live {
 public:
  // Fails the test when the block is not aligned, or overlaps a live one.
  void Add(uint64_t address, uint64_t bytes, const Value& value) {
    ASSERT_EQ(address % shim::arena::kAlignment, 0u);
    const typename std::map<uint64_t, Entry>::iterator next = blocks_.lower_bound(address);
    if (next != blocks_.end()) {
      ASSERT_LE(address + bytes, next->first);
    }
    if (next != blocks_.begin()) {
      ASSERT_LE(std::prev(next)->first + std::prev(next)->second.bytes, address);
    }
    blocks_[address] = {bytes, value};
    bytes_ += bytes;
  }
  Value Remove(uint64_t address) {
    const Entry entry = blocks_.at(address);
    blocks_.erase(address);
    bytes_ -= entry.bytes;
    return entry.value;
  }
  // The `n`th by address.
  uint64_t At(uint64_t n) const { return std::next(blocks_.begin(), static_cast<long>(n))->first; }
  size_t size() const { return blocks_.size(); }
  bool empty() const { return blocks_.empty(); }
  uint64_t bytes() const { return bytes_; }
  // Whether a live block lies inside the range.
  bool Touches(const shim::arena::Range& range) const {
    const typename std::map<uint64_t, Entry>::const_iterator it = blocks_.lower_bound(range.base);
    return it != blocks_.end() && it->first < range.base + range.bytes;
  }

 private:
  struct Entry {
    uint64_t bytes;
    Value value;
  };
  std::map<uint64_t, Entry> blocks_;
  uint64_t bytes_ = 0;
};

}  // namespace shim_arena_test
