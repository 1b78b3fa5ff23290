// The session's memory outside the lane, on all devices: blocks of the program and of its pools
// (shim/arena/persistent.h) in ranges that the worker maps when they are needed.
//
// An empty range is held by a pool, or cached: free in every query, taken by the next allocation,
// and given back before this session waits for memory (MakeRoom).
//
// Thread safety: the mutex is the owner's, who holds it around several parts. Methods that take a
// Lock REQUIRE that it is held, and let it go while the worker is asked. Methods whose names end in
// Locked REQUIRE it, too. All others take it themselves.
#pragma once

#include "ipc/calls/vendor.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "ipc/calls/limits.h"
#include "shim/arena/addresses.h"
#include "shim/arena/persistent.h"
#include "shim/objects.h"

namespace shim {

class PersistentMemory {
 public:
  using Lock = std::unique_lock<std::mutex>;
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
  // much of what is mapped is empty. All three outlive this object.
  PersistentMemory(std::mutex* mutex, uint64_t base, uint64_t bytes, Worker* worker,
                   std::span<std::atomic<uint64_t>> empty_bytes);

  // Maps a range when no mapped one has room. 2 when it does not fit.
  CUresult Take(Lock* lock, const Context& context, const arena::Persistent::Request& request,
                arena::Persistent::Block* block);
  // The ranges that become superfluous are appended, for Unmap() once the mutex is free.
  void GiveLocked(int device, const arena::Persistent::Block& block, arena::Stamp stamp,
                  std::vector<arena::Range>* unmap);
  // A block of the owner outside these ranges (in the lane): `bytes` more, or less.
  void ChargeLocked(int device, Owner owner, int64_t bytes);
  // An iteration ends: the ranges that it did not need are appended.
  void ReleaseUnneededLocked(int device, std::vector<arena::Range>* unmap);

  void Unmap(int device, const std::vector<arena::Range>& ranges);
  // The worker was told otherwise: the addresses may be used again.
  void Unmapped(const std::vector<arena::Range>& ranges);
  // A session never waits for memory that it has itself and does not use.
  void MakeRoom(const Context& context, uint64_t bytes);
  // Gives back all that is not live, of pools too.
  void Trim(int device);
  uint64_t cached_bytes(int device);

  // --- pools
  arena::Persistent::Usage UsageOf(int device, Owner owner);
  void ResetHigh(int device, Owner owner, bool used);
  // The owner keeps at most `keep` bytes, as far as they are not live.
  void Release(int device, Owner owner, uint64_t keep);
  void SetThreshold(int device, Owner owner, uint64_t bytes);
  uint64_t ThresholdOf(int device, Owner owner);
  void EndOwner(int device, Owner owner);
  // The program has waited for the device: pools release what is over their thresholds.
  void OnSynchronized() {
    if (held_.load(std::memory_order_relaxed)) ReleaseHeld();
  }

 private:
  arena::Persistent& Of(int device);
  void ShowEmpty(int device);
  void ReleaseHeld();

  std::mutex& mutex_;
  Worker& worker_;
  const std::span<std::atomic<uint64_t>> empty_bytes_;
  arena::Addresses addresses_;
  std::array<std::unique_ptr<arena::Persistent>, ipc::limits::kLegacySlots> devices_;
  std::atomic<bool> held_{false};  // a pool may hold empty ranges
};

}  // namespace shim
