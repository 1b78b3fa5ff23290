#include "softgpu/driver/heap.h"

#include <sys/mman.h>

#include <cassert>
#include <iterator>

#include "base/mutex.h"

namespace softgpu {
namespace {

void* HeapPointer(uint64_t address) { return reinterpret_cast<void*>(address); }

bool Commit(uint64_t address, uint64_t bytes) {
  return mprotect(HeapPointer(address), bytes, PROT_READ | PROT_WRITE) == 0;
}

// A fresh mapping in place of the old one drops its pages and its access in one step.
void Decommit(uint64_t address, uint64_t bytes) {
  void* const result = mmap(HeapPointer(address), bytes, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  assert(result == HeapPointer(address));
  static_cast<void>(result);
}

}  // namespace

uint64_t Heap::RoundUp(uint64_t bytes) {
  const uint64_t unit = bytes <= kSmallBytesMax ? kAlignment : 4096;
  return (bytes + unit - 1) & ~(unit - 1);
}

std::optional<uint64_t> Heap::Allocate(uint64_t bytes) {
  base::MutexLock lock(&mutex_);
  bytes = RoundUp(bytes);
  return bytes <= kSmallBytesMax ? AllocateSmall(bytes) : AllocatePages(bytes);
}

std::optional<uint64_t> Heap::AllocateSmall(uint64_t bytes) {
  for (const auto& [base, chunk] : chunks_) {
    const std::optional<uint64_t> address = chunk->Allocate(bytes, kAlignment);
    if (!address) continue;
    if (base == spare_chunk_) spare_chunk_ = 0;
    return address;
  }
  const std::optional<uint64_t> base = AllocatePages(kChunkBytes);
  if (!base) return std::nullopt;
  chunks_[*base] = std::make_unique<RangeAllocator>(*base, kChunkBytes);
  return chunks_[*base]->Allocate(bytes, kAlignment);
}

std::optional<uint64_t> Heap::AllocatePages(uint64_t bytes) {
  const std::optional<uint64_t> address = ranges_.Allocate(bytes, kChunkBytes);
  if (!address) return std::nullopt;
  if (Commit(*address, bytes)) return address;
  ranges_.Free(*address, bytes);
  return std::nullopt;
}

void Heap::Free(uint64_t address, uint64_t bytes) {
  base::MutexLock lock(&mutex_);
  bytes = RoundUp(bytes);
  if (bytes <= kSmallBytesMax) {
    FreeSmall(address, bytes);
    return;
  }
  Decommit(address, bytes);
  ranges_.Free(address, bytes);
}

void Heap::FreeSmall(uint64_t address, uint64_t bytes) {
  const auto it = std::prev(chunks_.upper_bound(address));
  it->second->Free(address, bytes);
  if (!it->second->Empty()) return;
  if (spare_chunk_ == 0) {
    spare_chunk_ = it->first;
    return;
  }
  Decommit(it->first, kChunkBytes);
  ranges_.Free(it->first, kChunkBytes);
  chunks_.erase(it);
}

std::optional<uint64_t> Heap::Reserve(uint64_t bytes, uint64_t align) {
  base::MutexLock lock(&mutex_);
  return ranges_.Allocate(bytes, align);
}

bool Heap::ReserveAt(uint64_t address, uint64_t bytes) {
  base::MutexLock lock(&mutex_);
  return ranges_.AllocateAt(address, bytes);
}

void Heap::Unreserve(uint64_t address, uint64_t bytes) {
  base::MutexLock lock(&mutex_);
  ranges_.Free(address, bytes);
}

}  // namespace softgpu
