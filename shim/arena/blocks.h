// Blocks of device memory inside ranges of addresses: a two-level segregated fit whose books lie
// beside the memory, not in it (Masmano et al., TLSF, 2004).
//
// Taking and giving cost O(1); neighbours that are free become one. Which address a request gets is
// a function of the calls alone, and once everything is free, or after Canonicalize(), of the live
// blocks alone: equal sequences then get equal addresses. Free memory remembers what must be
// finished before it is used again (Stamp). Thread safety: none; the owner locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shim/arena/fences.h"

namespace shim::arena {

inline constexpr uint64_t kAlignment = 512;

inline constexpr uint64_t RoundUp(uint64_t bytes, uint64_t step) {
  return (bytes + step - 1) / step * step;
}

struct Range {
  uint64_t base = 0;
  uint64_t bytes = 0;
  bool operator==(const Range&) const = default;
};

class Blocks {
 public:
  using Index = uint32_t;
  static constexpr Index kNone = ~Index{0};

  Blocks();

  struct Taken {
    Index index = kNone;  // what Give() takes
    uint64_t address = 0;
    uint64_t bytes = 0;   // rounded up to kAlignment
    Stamp stamp;          // of what was there before
    bool opened = false;  // nothing else in its range is live
  };

  // Multiples of kAlignment. Blocks never cross from one range into the next.
  void AddRange(Range range, Stamp stamp);
  // Forgets a range. REQUIRES: nothing in it is live; `base` is where it begins.
  void RemoveRange(uint64_t base, Stamp* stamp);

  // False when no free block is large enough. REQUIRES: bytes > 0.
  bool Take(uint64_t bytes, Taken* taken);
  // True when the block's whole range is free now; *range says which.
  bool Give(Index index, Stamp stamp, Range* range);
  // Brings the free blocks into the order of their addresses, so that what comes depends only on
  // what is live.
  void Canonicalize();

  uint64_t live_bytes() const { return live_bytes_; }
  uint64_t total_bytes() const { return total_bytes_; }
  // The live block that begins there; its index is kNone when there is none. Costs O(blocks).
  Taken LiveAt(uint64_t address) const {
    for (Index i = 0; i < nodes_.size(); ++i) {
      const Node& node = nodes_[i];
      if (node.is_used && !node.is_free && node.base == address)
        return {.index = i, .address = address, .bytes = node.units * kAlignment};
    }
    return {};
  }
  // Where the highest live block ends; 0 when there is none. Costs O(blocks).
  uint64_t LiveEnd() const;

 private:
  static constexpr int kSecondBits = 4;
  static constexpr int kSeconds = 1 << kSecondBits;
  static constexpr int kFirsts = 32;
  static constexpr int kLooks = 8;  // into the list of a request's own class

  struct Node {
    uint64_t base = 0;
    uint32_t units = 0;  // of kAlignment
    bool is_free = false;
    bool is_used = false;  // the node itself
    Index before = kNone;  // neighbours by address, of the same range
    Index after = kNone;
    Index last = kNone;  // neighbours in the list of free blocks
    Index next = kNone;
    Stamp stamp;
  };

  static void ClassOf(uint32_t units, int* first, int* second);
  Index Fit(uint32_t units) const;
  Index NewNode();
  void DropNode(Index index);
  void Link(Index index);
  void Unlink(Index index);
  Index Join(Index left, Index right);
  Index FirstOf(uint64_t base) const;

  std::vector<Node> nodes_;
  std::vector<Index> spare_;
  Index heads_[kFirsts][kSeconds];
  uint32_t first_map_ = 0;
  uint32_t second_map_[kFirsts] = {};
  uint64_t live_bytes_ = 0;
  uint64_t total_bytes_ = 0;
};

}  // namespace shim::arena
