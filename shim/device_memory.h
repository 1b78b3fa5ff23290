// Device memory of the session: the client's allocators over what the worker has backed. An
// allocation is local unless a range must be mapped or the lane must grow.
//
// What counts: memory is live (a block of the program), held (an empty range that a pool may keep),
// or cached (an empty range without an owner). LaneMemory says what is placed in the lane, and
// PersistentMemory has everything else; this class decides between them, locks both by the mutex of
// PersistentMemory, and tells the worker. The program's frees wait for nothing: shim/arena/fences.h
// says what orders an address that is used again.
//
// Thread safety: all methods. The mutex is never held while the worker is asked.
#pragma once

#include "ipc/calls/vendor.h"

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "shim/arena/persistent.h"
#include "shim/boundary.h"
#include "shim/lane_memory.h"
#include "shim/persistent_memory.h"
#include "shim/state.h"

namespace shim {

class DeviceMemory : public MemoryAtBoundary {
 public:
  // REQUIRES: the client is connected.
  static DeviceMemory& Process();

  // For which owner memory is taken: cuMemAlloc, or a pool in the order of a stream.
  struct Order {
    uint32_t owner = arena::Persistent::kProgram;
    int32_t slot = arena::kAnyStream;
    uint64_t pool = 0;  // the program's name of the owner
  };
  // Fills base, bytes, device and block of *made. 2 when it does not fit.
  CUresult Allocate(const Context& context, size_t bytes, const Order& order, Allocation* made);
  // `slot`: the stream whose order frees it, or kAnyStream.
  void Free(const Allocation& allocation, int32_t slot);

  PersistentMemory& persistent() { return persistent_; }
  uint64_t live_bytes() const { return live_bytes_.load(std::memory_order_relaxed); }
  struct Counts {
    uint64_t allocations = 0, hashed = 0, ephemeral = 0, wrong = 0;
  };
  Counts counts();

  // The program has waited for the device.
  void OnSynchronized() { persistent_.OnSynchronized(); }
  // The same, also where the program has waited for a copy alone.
  void OnWaited() {
    if (holds_freed_.load(std::memory_order_relaxed)) TellLaneOfWait();
  }
  // The last context on the device ends, and with it all memory there. True: the lane was there.
  bool OnContextReset(int device);

  // --- MemoryAtBoundary
  Wishes OnBoundary() override;
  void HoldFreed(bool holds) override;
  void OnAllSent() override;
  void Unmapped(const std::vector<arena::Range>& ranges) override { persistent_.Unmapped(ranges); }

 private:
  struct Placement {
    arena::Sites::Class predicted = arena::Sites::Class::kPersistent;
    uint64_t site = arena::Sites::kNoSite;
  };

  DeviceMemory();
  Placement Predict(int device, size_t bytes) REQUIRES(persistent_.mutex());
  bool TakeEphemeral(const Context& context, size_t bytes, const Order& order, Allocation* made)
      REQUIRES(persistent_.mutex());
  void TellLaneOfWait();
  void AwaitSending();
  void ShowLaneBlocks() REQUIRES(persistent_.mutex());

  const bool use_sites_;
  PersistentMemory persistent_;
  LaneMemory lane_ GUARDED_BY(persistent_.mutex());
  Counts counts_ GUARDED_BY(persistent_.mutex());
  uint64_t waited_at_ GUARDED_BY(persistent_.mutex()) = 0;  // how many calls were work by then
  std::atomic<uint64_t> live_bytes_{0};                     // written under the mutex
  std::atomic<bool> holds_freed_{false};                    // likewise
};

}  // namespace shim
