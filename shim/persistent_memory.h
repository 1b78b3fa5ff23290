// The session's memory outside the lane, on all devices: blocks of the program and of its pools
// (shim/arena/persistent.h) in ranges that the worker maps when they are needed.
//
// An empty range is held by a pool, or cached: free in every query, taken by the next allocation,
// and given back before this session waits for memory (MakeRoom).
//
// Thread safety: all methods from any thread. The mutex is DeviceMemory's as well, which holds it
// around this and the lane. Take() and the methods whose names end in Locked REQUIRE mutex();
// Take() lets it go while the worker is asked. All others lock it themselves.
#pragma once

#include "ipc/calls/vendor.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "ipc/calls/limits.h"
#include "shim/arena/addresses.h"
#include "shim/arena/persistent.h"
#include "shim/lock_order.h"
#include "shim/objects.h"

namespace shim {

class PersistentMemory {
 public:
  using Owner = uint32_t;  // of pools, or arena::Persistent::kProgram

  // What the worker does. Never asked with the mutex held.
  class Worker {
   public:
    virtual ~Worker() = default;
    virtual CUresult Map(const Context& context, arena::Range range) = 0;
    // May be asked for any device, whatever context is current; waits for nothing.
    virtual void Unmap(int device, arena::Range range) = 0;
    // How much more can be mapped; false when the worker does not say.
    virtual bool FreeBytes(const Context& context, size_t* bytes) = 0;
  };

  // The addresses are [base, base + bytes). empty_bytes: of each device, where status reads how
  // much of what is mapped is empty. Worker and words outlive this object.
  PersistentMemory(uint64_t base, uint64_t bytes, Worker* worker,
                   std::span<std::atomic<uint64_t>> empty_bytes);

  base::Mutex& mutex() RETURN_CAPABILITY(mutex_) { return mutex_; }

  // Maps a range when no mapped one has room. 2 when it does not fit.
  CUresult Take(const Context& context, const arena::Persistent::Request& request,
                arena::Persistent::Block* block) REQUIRES(mutex_);
  // The ranges that become superfluous are appended, for Unmap() once the mutex is free.
  void GiveLocked(int device, const arena::Persistent::Block& block, arena::Stamp stamp,
                  std::vector<arena::Range>* unmap) REQUIRES(mutex_);
  // A block of the owner outside these ranges (in the lane): `bytes` more, or less.
  void ChargeLocked(int device, Owner owner, int64_t bytes) REQUIRES(mutex_);
  // An iteration ends: the ranges that it did not need are appended.
  void ReleaseUnneededLocked(int device, std::vector<arena::Range>* unmap) REQUIRES(mutex_);

  void Unmap(int device, const std::vector<arena::Range>& ranges) EXCLUDES(mutex_);
  // Addresses without memory, a multiple of `alignment`, until Unmapped(); nothing when none are
  // left.
  std::optional<uint64_t> TakeAddresses(uint64_t bytes, uint64_t alignment) EXCLUDES(mutex_);
  // The worker was told otherwise: the addresses may be used again.
  void Unmapped(const std::vector<arena::Range>& ranges) EXCLUDES(mutex_);
  // A session never waits for memory that it has itself and does not use.
  void MakeRoom(const Context& context, uint64_t bytes) EXCLUDES(mutex_);
  // Gives back all that is not live, of pools too.
  void Trim(int device) EXCLUDES(mutex_);
  uint64_t cached_bytes(int device) EXCLUDES(mutex_);

  // --- pools
  arena::Persistent::Usage UsageOf(int device, Owner owner) EXCLUDES(mutex_);
  void ResetHigh(int device, Owner owner, bool used) EXCLUDES(mutex_);
  // The owner keeps at most `keep` bytes, as far as they are not live.
  void Release(int device, Owner owner, uint64_t keep) EXCLUDES(mutex_);
  void SetThreshold(int device, Owner owner, uint64_t bytes) EXCLUDES(mutex_);
  uint64_t ThresholdOf(int device, Owner owner) EXCLUDES(mutex_);
  void EndOwner(int device, Owner owner) EXCLUDES(mutex_);
  // The program has waited for the device: pools release what is over their thresholds.
  void OnSynchronized() EXCLUDES(mutex_) {
    if (held_.load(std::memory_order_relaxed)) ReleaseHeld();
  }

 private:
  arena::Persistent& Of(int device) REQUIRES(mutex_);
  void ShowEmpty(int device) REQUIRES(mutex_);
  void ReleaseHeld() EXCLUDES(mutex_);

  base::Mutex mutex_ ACQUIRED_AFTER(lock_order::kKeeping);
  Worker& worker_;
  const std::span<std::atomic<uint64_t>> empty_bytes_;
  arena::Addresses addresses_ GUARDED_BY(mutex_);
  std::array<std::unique_ptr<arena::Persistent>, ipc::limits::kLegacySlots> devices_
      GUARDED_BY(mutex_);
  std::atomic<bool> held_{false};  // a pool may hold empty ranges
};

}  // namespace shim
