// Pinned memory that the program has freed and is likely to want again: a program that makes a
// buffer for each copy would otherwise ask the worker twice a copy.
//
// It stays mapped on both sides, and counts as the session's. Little is kept, the latest; what is
// over goes, the oldest first. Thread safety: all methods.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "shim/arena/blocks.h"

namespace shim {

class SparePinned {
 public:
  static SparePinned& Process();

  // A range of exactly so many bytes, zeroed. False: there is none.
  bool Take(size_t bytes, uint64_t* address);
  // REQUIRES: the device is done with it. What must be freed instead is appended.
  void Keep(arena::Range range, std::vector<arena::Range>* freed);
  // All of it is to be freed.
  std::vector<arena::Range> TakeAll();

 private:
  static constexpr uint64_t kBytesMax = uint64_t{4} << 20;

  std::mutex mutex_;
  std::deque<arena::Range> ranges_;  // the oldest first
  uint64_t bytes_ = 0;
};

}  // namespace shim
