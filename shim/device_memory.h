// Device memory of the session: the client's allocators (shim/arena/) over what the worker has
// backed. An allocation is local unless a range must be mapped or the lane must grow.
//
// What counts: memory is live (a block of the program), held (an empty range that a pool may keep),
// or cached (an empty range of nobody). Cached memory is free in every query: the next allocation
// takes it without asking anyone, and it is given back before this session waits for memory.
//
// The program's frees wait for nothing: shim/arena/fences.h says what orders an address that is
// used again. Once iterations are recognised, what dies within its iteration is placed in the lane
// (shim/arena/{ephemeral,sites}.h); until then everything is persistent.
//
// Thread safety: all methods. The lock is never held while the worker is asked.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "ipc/calls/limits.h"
#include "shim/arena/addresses.h"
#include "shim/arena/ephemeral.h"
#include "shim/arena/fences.h"
#include "shim/arena/persistent.h"
#include "shim/arena/sites.h"
#include "shim/boundary.h"
#include "shim/state.h"

namespace shim {

class DeviceMemory : public MemoryAtBoundary {
 public:
  // REQUIRES: the client is connected.
  static DeviceMemory& Process();

  // Who asks: cuMemAlloc, or a pool in the order of a stream.
  struct Order {
    uint32_t owner = arena::Persistent::kProgram;
    int32_t slot = arena::kAnyStream;
    uint64_t pool = 0;  // the program's name of the owner
  };
  // Fills base, bytes, device and block of *made. 2 when it does not fit.
  CUresult Allocate(const Context& context, size_t bytes, const Order& order, Allocation* made);
  // `slot`: the stream whose order frees it, or kAnyStream.
  void Free(const Allocation& allocation, int32_t slot);

  // --- what others ask
  uint64_t cached_bytes(int device);
  uint64_t live_bytes() const { return live_bytes_.load(std::memory_order_relaxed); }
  std::vector<arena::Range> MappedRanges(int device);
  struct Counts {
    uint64_t allocations = 0, hashed = 0, ephemeral = 0, wrong = 0;
  };
  Counts counts();

  // --- pools: owners other than kProgram
  arena::Persistent::Usage UsageOf(int device, uint32_t owner);
  void ResetHigh(int device, uint32_t owner, bool used);
  // The owner keeps at most `keep` bytes, as far as they are not live.
  void Release(int device, uint32_t owner, uint64_t keep);
  void SetThreshold(int device, uint32_t owner, uint64_t bytes);
  uint64_t ThresholdOf(int device, uint32_t owner);
  // The program has waited for the device: pools release what is over their thresholds.
  void OnSynchronized() {
    if (held_.load(std::memory_order_relaxed)) ReleaseHeld();
  }
  void EndOwner(int device, uint32_t owner);
  // Gives back all that is not live, of pools too.
  void Trim(int device);
  // The last context on the device ends, and with it all memory there. True: the lane was there.
  bool OnContextReset(int device);

  // --- iterations
  Wishes OnBoundary() override;
  void Unmapped(const std::vector<arena::Range>& ranges) override;

 private:
  using Lock = std::unique_lock<std::mutex>;

  struct Placement {
    arena::Sites::Class predicted = arena::Sites::Class::kPersistent;
    uint64_t site = arena::Sites::kNoSite;
  };

  DeviceMemory();
  arena::Persistent& Of(int device);
  // Tells status how much of what is mapped is empty. REQUIRES: the lock is held.
  void ShowEmpty(int device);
  void ReleaseHeld();
  Placement Predict(Lock* lock, int device, size_t bytes);
  bool TakeEphemeral(Lock* lock, const Context& context, size_t bytes, const Order& order,
                     Allocation* made);
  CUresult TakePersistent(Lock* lock, const Context& context, size_t bytes, const Order& order,
                          bool short_lived, Allocation* made);
  CUresult MapRange(const Context& context, uint64_t address, uint64_t bytes);
  void MakeRoom(const Context& context, uint64_t bytes);
  void Note(const Placement& placement, Allocation* made);
  void OnLost();
  void CountInLane(int32_t more);
  arena::Sites::Birth FirstOfNext() const;
  void Unmap(int device, const std::vector<arena::Range>& ranges);
  CUresult JoinIfNeeded(const Context& context, const arena::Stamp& stamp, const Order& order);

  const bool use_sites_;
  const bool use_lane_;
  std::mutex mutex_;
  arena::Addresses addresses_;
  arena::Ephemeral ephemeral_;
  arena::Sites sites_;
  std::array<std::unique_ptr<arena::Persistent>, ipc::limits::kLegacySlots> devices_;
  int lane_device_ = -1;
  bool tracking_ = false;      // there was a boundary: births are recorded
  bool locked_ = false;        // iterations are recognised: the lane is used
  bool lane_refused_ = false;  // until the next boundary
  struct Place {
    arena::Range range;
    uint64_t operations = 0;  // Client::operations() when it was born
    bool dead = false;
  };
  std::vector<Place> places_;            // of this iteration's births
  std::map<uint64_t, uint64_t> strays_;  // ephemerals from before iterations were lost
  std::unordered_set<uint64_t> kept_;    // addresses of LaneKeep
  uint32_t lane_blocks_ = 0;             // alive in the lane, those kept aside
  uint64_t born_bytes_ = 0;              // of this iteration, alive
  uint64_t born_peak_ = 0;
  uint64_t learned_peak_ = 0;
  Counts counts_;
  std::atomic<uint64_t> live_bytes_{0};  // written under the lock
  std::atomic<bool> held_{false};        // a pool may hold empty ranges
};

}  // namespace shim
