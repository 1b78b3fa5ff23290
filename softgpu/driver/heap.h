// Memory of one span of the reserved window: page tables behind cuMemAlloc, pinned and managed
// memory.
//
// The span is reserved without access at start. Small blocks share 2 MiB chunks, larger ones own
// their pages, which are given back to the system on free: so a kernel that strays past a large
// block faults. Thread safety: every function may be called from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "base/mutex.h"
#include "softgpu/driver/range_allocator.h"

namespace softgpu {

class Heap {
 public:
  static constexpr uint64_t kAlignment = 512;
  static constexpr uint64_t kChunkBytes = uint64_t{2} << 20;
  static constexpr uint64_t kSmallBytesMax = kChunkBytes / 2;

  // REQUIRES: [base, base + bytes) is mapped PROT_NONE by the caller and belongs to this heap.
  Heap(uint64_t base, uint64_t bytes) : ranges_(base, bytes) {}

  // What a request of `bytes` takes from the device's memory.
  static uint64_t RoundUp(uint64_t bytes);

  // Readable and writable memory of RoundUp(bytes), or nothing when addresses or pages run out.
  std::optional<uint64_t> Allocate(uint64_t bytes);
  void Free(uint64_t address, uint64_t bytes);

  // Addresses without memory, for cuMemAddressReserve. They stay PROT_NONE.
  std::optional<uint64_t> Reserve(uint64_t bytes, uint64_t align);
  bool ReserveAt(uint64_t address, uint64_t bytes);
  void Unreserve(uint64_t address, uint64_t bytes);

 private:
  std::optional<uint64_t> AllocateSmall(uint64_t bytes) REQUIRES(mutex_);
  void FreeSmall(uint64_t address, uint64_t bytes) REQUIRES(mutex_);
  std::optional<uint64_t> AllocatePages(uint64_t bytes) REQUIRES(mutex_);

  base::Mutex mutex_;
  RangeAllocator ranges_ GUARDED_BY(mutex_);
  std::map<uint64_t, std::unique_ptr<RangeAllocator>> chunks_ GUARDED_BY(mutex_);  // by base
  // One empty chunk is kept: freeing and allocating a small block costs no system call.
  uint64_t spare_chunk_ GUARDED_BY(mutex_) = 0;
};

}  // namespace softgpu
