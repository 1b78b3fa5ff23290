// What the session's memory wants the worker to be told where an iteration ends.
#pragma once

#include <atomic>
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
  // From now on freed memory may wait before it is used again, or may not. It waits where
  // iterations are replayed. REQUIRES: the send lock is held, or nothing was sent yet.
  virtual void HoldFreed(bool holds) = 0;
  // A block was freed while messages of the session were held back: OnAllSent() is to be called
  // when none is any more.
  bool AwaitsSending() const { return awaits_sending_.load(std::memory_order_relaxed); }
  // REQUIRES: the send lock is held.
  virtual void OnAllSent() = 0;
  // The worker was told: the addresses may be used again.
  virtual void Unmapped(const std::vector<arena::Range>& ranges) = 0;

 protected:
  std::atomic<bool> awaits_sending_{false};
};

}  // namespace shim
