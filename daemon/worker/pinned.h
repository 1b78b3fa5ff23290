// A session's pinned host memory: ranges of its sparse file, mapped at the same addresses as in the
// client and registered with the driver, so that copies from and to them need no staging. Thread
// safety: one session's thread; bytes() from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>

#include "daemon/worker/session.h"

namespace worker {

// Counts the ranges of all sessions of a worker. A range takes one of the process's mappings until
// it is unmapped, which may be after the end of its session. Thread safety: any thread.
class PinnedBudget {
 public:
  explicit PinnedBudget(unsigned ranges_max) : ranges_max_(ranges_max) {}
  bool Take();  // false: there are ranges_max already
  void Give() { used_.fetch_sub(1); }

 private:
  const unsigned ranges_max_;
  std::atomic<unsigned> used_{0};
};

// The worker's one budget.
PinnedBudget& SharedPinnedBudget();

class PinnedMemory {
 public:
  // Takes over `fd`, a sparse file of limits::kPinnedWindowBytes. The budget outlives the reaper.
  PinnedMemory(const Environment& environment, uint32_t slot, int fd,
               PinnedBudget* budget = &SharedPinnedBudget());
  ~PinnedMemory();  // REQUIRES: nothing on the device uses it any more
  PinnedMemory(const PinnedMemory&) = delete;

  // CUDA_ERROR_NOT_READY while the driver still has what was unmapped there before, by this session
  // or the slot's last one: the client takes another place. CUDA_ERROR_OUT_OF_MEMORY when this
  // session or all sessions together have too many ranges, or the host has no memory.
  CUresult Map(uint64_t address, uint64_t bytes, unsigned flags);
  // Its bytes go at once. The driver, which may wait for everybody's work before it lets the range
  // go, is told later.
  CUresult Unmap(uint64_t address);
  // True when [address, address + bytes) lies inside one mapped range.
  bool Contains(uint64_t address, uint64_t bytes) const;
  // Unmaps everything here; the bytes stay in the file, for a successor or the program itself:
  // registered memory is the program's own, whatever becomes of its session.
  void Detach();
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  const Environment& environment_;
  const uint64_t base_;
  const int fd_;
  PinnedBudget* const budget_;
  CUresult MapHere(uint64_t address, uint64_t bytes);
  void UnmapHere(uint64_t address, uint64_t bytes);
  bool Overlaps(uint64_t address, uint64_t bytes) const;

  std::map<uint64_t, uint64_t> ranges_;  // start -> bytes
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace worker
