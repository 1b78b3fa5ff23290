// Freed blocks that wait before they are used again.
//
// Two launches that write the same block in turn are ordered by it, although neither needs the
// other: where memory is used again at once, no branches of a program can run side by side
// (docs/replay.md). First in, first out, by bytes: so many as the owner says wait at most, and a
// block of more bytes does not wait. Pure. Thread safety: none; the owner locks.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace shim::arena {

template <class Block>
class FreedQueue {
 public:
  // None wait at first. When it is less than before, the owner calls TakeOver().
  void SetBytesMax(uint64_t bytes) { bytes_max_ = bytes; }
  // A block is freed. False: it does not wait. Otherwise the owner takes out, by TakeOver(), what
  // waits no longer.
  bool Add(const Block& block, uint64_t bytes) {
    if (bytes > bytes_max_) return false;
    waiting_.push_back({block, bytes});
    bytes_ += bytes;
    return true;
  }
  // The oldest, while too many bytes wait.
  std::optional<Block> TakeOver() { return bytes_ > bytes_max_ ? TakeOldest() : std::nullopt; }
  // The oldest, however few wait.
  std::optional<Block> TakeOldest() {
    if (waiting_.empty()) return std::nullopt;
    const Entry oldest = waiting_.front();
    waiting_.pop_front();
    bytes_ -= oldest.bytes;
    return oldest.block;
  }

  uint64_t bytes() const { return bytes_; }
  bool empty() const { return waiting_.empty(); }

 private:
  struct Entry {
    Block block;
    uint64_t bytes;
  };

  std::deque<Entry> waiting_;  // the oldest first
  uint64_t bytes_ = 0;
  uint64_t bytes_max_ = 0;
};

}  // namespace shim::arena
