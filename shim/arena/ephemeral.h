// The ephemeral part: what is born and dies within one iteration, in memory that a lane lends.
//
// The lane is always the first bytes of the part; addresses depend on how many they are only where
// freed blocks wait (below).
// Deterministic: at a boundary the state is a function of what is still live (normally nothing), so
// that the same sequence of allocations gets the same addresses in every iteration (lanes.md; Salus
// 3.2 calls it the ephemeral memory region). Blocks that outlive their iteration stay where they
// are; the owner corrects their site's class and tells the worker (LaneKeep).
//
// Where iterations are replayed, freed blocks wait before they are used again (freed_queue.h): only
// in iterations that have come before (repeats.h), and only so many bytes that the lane as it is
// has room for the whole iteration, which is tried beforehand. Nothing waits past a boundary, or
// past a wait for the device: what comes later depends on earlier work in any case.
//
// Pure: growing is the caller's to do (LaneReserve). Thread safety: none; the owner locks.
#pragma once

#include <cstdint>
#include <vector>

#include "shim/arena/blocks.h"
#include "shim/arena/freed_queue.h"
#include "shim/arena/repeats.h"

namespace shim::arena {

class Ephemeral {
 public:
  // The lane grows in these steps.
  static constexpr uint64_t kStepBytes = uint64_t{2} << 20;
  // So many freed bytes wait at most; where the lane has no room for that, parts of it are tried.
  static constexpr uint64_t kWaitingBytesMax = uint64_t{4} << 20;

  Ephemeral(uint64_t base, uint64_t bytes_max);

  // False when the part has no such addresses.
  bool Take(uint64_t bytes, Blocks::Taken* taken);
  // The block that lies there may wait.
  void Give(Blocks::Index index, Range range, Stamp stamp);
  // The block is free at once.
  void GiveNow(Blocks::Index index, Range range, Stamp stamp);
  // The program has waited for the device.
  void OnWaited();
  // From now on freed blocks may wait, or may not.
  void HoldFreed(bool holds);

  // How large the lane must be in all before the block is used, with some room ahead so that a
  // growing iteration asks seldom; 0 when it is large enough.
  uint64_t GrowthFor(const Blocks::Taken& taken) const;
  // The lane is `bytes` in all now. Less than before changes nothing.
  void Grow(uint64_t bytes);
  // There is no lane any more. REQUIRES: nothing is live.
  void OnLaneLost();

  // The iteration ends. Returns its peak: how much of the part it reached.
  uint64_t OnBoundary();

  bool Contains(uint64_t address) const { return address - base_ < bytes_max_; }
  uint64_t bytes_max() const { return bytes_max_; }
  uint64_t lane_bytes() const { return lane_bytes_; }
  uint64_t live_bytes() const { return blocks_.live_bytes() - freed_.bytes(); }
  uint64_t peak_bytes() const { return peak_bytes_; }

 private:
  struct Freed {
    Blocks::Index index = Blocks::kNone;
    Stamp stamp;
  };
  struct Birth {
    uint64_t iteration = 0;
    uint64_t number = 0;  // in the iteration
  };

  bool Place(uint64_t bytes, Blocks::Taken* taken);
  void Return(const Freed& freed);
  void ReturnAll();
  void Note(const Repeats::Op& op);
  void NoteBirth(const Blocks::Taken& taken);
  void NoteFree(Repeats::Op::Kind kind, Blocks::Index index, uint64_t address);
  void Plan(const Repeats::Iteration& iteration);
  bool HasRoomFor(const Repeats::Iteration& iteration, uint64_t waiting_bytes_max) const;

  const uint64_t base_;
  const uint64_t bytes_max_;
  Blocks blocks_;  // where blocks that wait are live
  bool holds_freed_ = false;
  FreedQueue<Freed> freed_;
  Repeats repeats_;
  std::vector<Birth> births_;  // of the latest block with this index
  uint64_t iteration_ = 1;
  uint64_t births_of_iteration_ = 0;
  bool freed_since_wait_ = false;
  uint64_t lane_bytes_ = 0;
  uint64_t peak_bytes_ = 0;
};

}  // namespace shim::arena
