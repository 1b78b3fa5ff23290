// The heap that malloc and free of kernels work on: which parts of a piece of device memory are
// taken.
//
// Blocks are multiples of 16 bytes at multiples of 16, with nothing between them: what is known of
// them lies here, where kernels cannot write. A block is cut from the smallest free part that has
// room, at the lowest address. Free neighbours become one part. Thread safety: every function
// may be called from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "base/mutex.h"
#include "softgpu/exec/launch.h"

namespace softgpu {

class DeviceHeap {
 public:
  static constexpr uint64_t kAlignment = 16;

  // REQUIRES: base is a multiple of kAlignment, and the memory outlives the heap.
  DeviceHeap(uint64_t base, uint64_t bytes);

  uint64_t bytes() const { return bytes_; }
  // A block of at least one byte, or 0 where none is free.
  uint64_t Allocate(uint64_t bytes);
  // False, and nothing happens, where no block begins at `address`.
  bool Free(uint64_t address);
  // The block with `address` in it, as long as it was asked for; end 0: there is none.
  Memory::Range BlockAt(uint64_t address) const;
  bool Contains(uint64_t address) const { return address - base_ < bytes_; }

 private:
  static uint64_t RoundUp(uint64_t bytes);
  void AddFree(uint64_t address, uint64_t bytes) REQUIRES(mutex_);
  void RemoveFree(std::map<uint64_t, uint64_t>::iterator part) REQUIRES(mutex_);

  const uint64_t base_, bytes_;
  mutable base::Mutex mutex_;
  std::map<uint64_t, uint64_t> free_ GUARDED_BY(mutex_);                     // bytes by address
  std::set<std::pair<uint64_t, uint64_t>> free_by_size_ GUARDED_BY(mutex_);  // bytes, address
  std::map<uint64_t, uint64_t> blocks_ GUARDED_BY(mutex_);  // bytes asked for by address
};

}  // namespace softgpu
