// The session's memory in the lane: which allocations are placed there, and what a boundary between
// two iterations means for them.
//
// While iterations are recognised, what dies within its iteration is placed in the lane
// (shim/arena/{ephemeral,sites}.h); anything else, and everything before, is persistent. A block
// that outlives its iteration keeps its address; the worker is told to keep the block's extents.
//
// Pure: what the worker is to be told is the caller's to do, and the caller says what it knows of
// iterations. Thread safety: none; DeviceMemory locks.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_set>
#include <vector>

#include "shim/arena/ephemeral.h"
#include "shim/arena/sites.h"
#include "shim/boundary.h"

namespace shim {

class LaneMemory {
 public:
  using Class = arena::Sites::Class;
  using Birth = arena::Sites::Birth;

  // `bytes_max` from `base`: the addresses that a lane may have. Without `enabled` all allocations
  // are persistent.
  LaneMemory(uint64_t base, uint64_t bytes_max, bool enabled);

  // --- an allocation
  // How it is to be placed; kUndecided: its call site tells, by PredictAt().
  Class Predict(int device, uint64_t bytes) const;
  Class PredictAt(uint64_t bytes, uint64_t site) const { return sites_.AskSite(bytes, site); }
  // Whether the lane takes ephemeral allocations now.
  bool IsOpen() const { return recognised_ && !refused_; }
  // False when it has no such addresses.
  bool Take(uint64_t bytes, arena::Blocks::Taken* taken) { return ephemeral_.Take(bytes, taken); }
  // How large the lane must be in all before the block is used; 0 when it is large enough. At
  // least what an iteration before needed, so that a lane grows once.
  uint64_t BytesFor(const arena::Blocks::Taken& taken) const;
  uint64_t lane_bytes() const { return ephemeral_.lane_bytes(); }
  // The lane is asked for on this device from now on.
  void SetDevice(int device) { device_ = device; }
  void Grow(uint64_t bytes) { ephemeral_.Grow(bytes); }
  // The lane does not grow: the block goes back, and until the next boundary all is persistent.
  void Refuse(const arena::Blocks::Taken& taken);
  // The block is the program's.
  void Enter() { ++blocks_; }
  // Any allocation, wherever it was placed; `operations`: how many calls were work before it. What
  // Free() needs of it later.
  Birth OnAllocate(arena::Range block, uint64_t bytes, uint64_t site, bool ephemeral,
                   uint64_t operations);

  // --- a free
  // Any allocation again.
  struct Freed {
    uint64_t base = 0;
    uint64_t block_bytes = 0;
    Birth birth = arena::Sites::kNoBirth;
    bool ephemeral = false;
    arena::Blocks::Index index = arena::Blocks::kNone;  // of an ephemeral one
    bool used = true;                                   // work that uses it may not be over
    bool sent = true;                                   // the worker has all the work that uses it
  };
  // True: it was kept over a boundary, so the worker must be told that it is gone (LaneDrop).
  bool OnFree(const Freed& freed, arena::Stamp stamp);
  // Whether freed blocks may wait from now on before they are used again (shim/arena/ephemeral.h).
  void HoldFreed(bool holds) { ephemeral_.HoldFreed(holds); }
  // The program has waited for the device.
  void OnWaited() { ephemeral_.OnWaited(); }

  // --- iterations
  // The iteration ends. `operations`: calls that were work so far; what was born since the last of
  // them is for the next iteration. Fills what the lane wishes.
  void OnBoundary(uint64_t operations, bool recognised, MemoryAtBoundary::Wishes* wishes);
  // Iterations are no longer recognised: the client sees no boundary at which a later block could
  // die, so later blocks are persistent. The blocks in the lane are told to the worker at the next
  // boundary that is recognised.
  void OnLost();
  bool recognised() const { return recognised_; }
  // The device's last context ends, and all its memory. True: the lane was there.
  bool OnContextReset(int device);

  // Blocks that are alive in the lane and were not kept over a boundary, and blocks that are freed
  // while work that uses them may be held back. While there are none, and no work is on its way to
  // the device, the worker may hand the lane on.
  uint32_t blocks() const { return blocks_ + unsent_; }
  // The worker has all work that uses blocks which are freed by now.
  void OnAllSent() { unsent_ = 0; }
  uint64_t wrong() const { return sites_.wrong(); }

 private:
  struct Newborn {
    arena::Range range;
    uint64_t operations = 0;
    bool dead = false;
  };

  Birth FirstOfNext(uint64_t operations) const;

  const bool enabled_;
  arena::Ephemeral ephemeral_;
  arena::Sites sites_;
  int device_ = -1;                      // -1: no lane was asked for yet
  bool tracking_ = false;                // there was a boundary: births are recorded
  bool recognised_ = false;              // the lane is used
  bool refused_ = false;                 // until the next boundary
  std::vector<Newborn> newborns_;        // of this iteration
  std::map<uint64_t, uint64_t> strays_;  // ephemerals from before iterations were lost
  std::unordered_set<uint64_t> kept_;    // over a boundary, by address
  uint32_t blocks_ = 0;                  // alive
  uint32_t unsent_ = 0;                  // freed
  uint64_t born_bytes_ = 0;              // of this iteration, alive
  uint64_t born_peak_ = 0;
  uint64_t learned_peak_ = 0;
};

}  // namespace shim
