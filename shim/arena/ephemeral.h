// The ephemeral part: what is born and dies within one iteration, in memory that a lane lends.
//
// The lane is always the first bytes of the part; addresses do not depend on how many they are.
// Deterministic: at a boundary the state is a function of what is still live (normally nothing), so
// that the same sequence of allocations gets the same addresses in every iteration (lanes.md; Salus
// 3.2 calls it the ephemeral memory region). Blocks that outlive their iteration stay where they
// are; the owner corrects their site's class and tells the worker (LaneKeep).
//
// Pure: growing is the caller's to do (LaneReserve). Thread safety: none; the owner locks.
#pragma once

#include <cstdint>
#include <vector>

#include "shim/arena/blocks.h"

namespace shim::arena {

class Ephemeral {
 public:
  // The lane grows in these steps.
  static constexpr uint64_t kStepBytes = uint64_t{2} << 20;

  Ephemeral(uint64_t base, uint64_t bytes_max);

  // False when the part has no such addresses.
  bool Take(uint64_t bytes, Blocks::Taken* taken);
  void Give(Blocks::Index index, Stamp stamp);

  // How large the lane must be in all before the block is used, with some room ahead so that a
  // growing iteration asks seldom; 0 when it is large enough.
  uint64_t GrowthFor(const Blocks::Taken& taken) const;
  // The lane is `bytes` in all now. Less than before changes nothing.
  void Grow(uint64_t bytes);
  // There is no lane any more. REQUIRES: nothing is live.
  void OnLaneLost() { lane_bytes_ = 0; }

  // The iteration ends. Returns its peak: how much of the part it reached.
  uint64_t OnBoundary();

  bool Contains(uint64_t address) const { return address - base_ < bytes_max_; }
  uint64_t bytes_max() const { return bytes_max_; }
  uint64_t lane_bytes() const { return lane_bytes_; }
  uint64_t live_bytes() const { return blocks_.live_bytes(); }
  uint64_t peak_bytes() const { return peak_bytes_; }

 private:
  const uint64_t base_;
  const uint64_t bytes_max_;
  Blocks blocks_;
  uint64_t lane_bytes_ = 0;
  uint64_t peak_bytes_ = 0;
};

}  // namespace shim::arena
