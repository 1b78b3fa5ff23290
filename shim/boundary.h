// What the session's memory wants the worker to be told where an iteration ends.
#pragma once

#include <cstdint>
#include <vector>

#include "shim/arena/blocks.h"

namespace shim {

class MemoryAtBoundary {
 public:
  struct Wishes {
    uint64_t persistent_bytes = 0;  // live
    uint64_t ephemeral_bytes = 0;   // how much of the lane the iteration reached
    // Of the device with the lane: what of the lane is still live. A LaneKeep of each goes before
    // the Boundary.
    std::vector<arena::Range> outlived;
    // Of the same device: what the iteration did not need. An ArenaUnmap of each goes before the
    // Boundary; then Unmapped().
    std::vector<arena::Range> unneeded;
    int lane_device = 0;
  };

  virtual ~MemoryAtBoundary() = default;
  // REQUIRES: the send lock is held; the first operation of the next iteration was not sent yet.
  virtual Wishes OnBoundary() = 0;
  // The worker was told: the addresses may be used again.
  virtual void Unmapped(const std::vector<arena::Range>& ranges) = 0;
};

}  // namespace shim
